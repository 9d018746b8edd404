// Measures the built packages: npm run bench -- SUBJECT [ARGUMENT...]. packages/bench/README.md has the arguments.
import { onSources, runSubject } from './subjects.js'

const BENCH = 'packages/bench/src'

runSubject('bench', {
  all: part('all', 'memory, mixed, redis, http and scale: writes docs/benchmarks, about 50 minutes'),
  memory: part('memory', 'decisions in memory beside peers: CPU a decision, bytes a key'),
  mixed: part('mixed', 'decisions in memory beside other limiters in the process'),
  redis: part('redis', 'decisions over Redis beside peers: decisions a second, latency, CPU of the server'),
  http: part('http', 'CPU of a request under each framework, beside peers'),
  scale: part('scale', 'millions of keys, several processes and a Cluster'),
  pages: {
    about: 'docs/benchmarks again from the figures of the last runs; measures nothing',
    needs: [],
    command: [`${BENCH}/main.js`, 'pages'],
  },
  before: part('before', 'this build beside an earlier commit'),
  'memory-size': {
    about: 'bytes a key in memory, for each algorithm',
    needs: ['build'],
    command: [`${BENCH}/memory/size.js`],
  },
  'redis-cpu': {
    about: 'CPU inside Redis, bytes a key and round trips of each algorithm, beside peers',
    needs: ['build', 'redis'],
    command: [`${BENCH}/redis-cpu/main.js`],
  },
  outage: {
    about: 'Express, Koa and Nest while Redis is stopped and killed under load, beside peers',
    needs: ['build', 'redis'],
    command: [`${BENCH}/outage/main.js`],
  },
  outbound: {
    about: "fleets under a provider's limit: 429s, throughput, gaps, order, beside peers",
    needs: ['build', 'redis'],
    command: [...onSources, 'packages/outbound/test/proofs/run.ts'],
  },
  machine: {
    about: 'processes of one machine: machineStore beside Redis and a cluster limiter of a peer',
    needs: ['build', 'redis'],
    command: [`${BENCH}/machine/main.js`],
  },
  metrics: {
    about: 'what a decision in memory takes more when it is observed, and when top keys are counted',
    needs: ['build'],
    command: [`${BENCH}/metrics/main.js`],
  },
  leases: {
    about: 'simulated: a fleet of 1,000 processes with leases; over the limit, unused, unfair',
    needs: ['build'],
    command: [`${BENCH}/simulation/leases.js`],
  },
  budget: {
    about:
      'simulated: token budgets that are settled late; served as a share of the exact promise, and over it',
    needs: ['build'],
    command: [`${BENCH}/simulation/budget.js`],
  },
})

/**
 * @param {string} name
 * @param {string} about
 * @returns {import('./subjects.js').Subject}
 */
function part(name, about) {
  return { about, needs: ['build', 'redis'], command: [`${BENCH}/main.js`, name] }
}
