// Measures the built packages: npm run bench -- SUBJECT [ARGUMENT...]. packages/bench/README.md has the arguments.
import { onSources, runSubject } from './subjects.js'

const BENCH = 'packages/bench/src'
const CORE_TESTS = 'packages/core/test'
const PARTS = `${BENCH}/main.js`

// prettier-ignore
runSubject('bench', {
  all: ['build redis', 'memory, mixed, redis, http, by-hand, scale and cluster: writes docs/benchmarks, one and a half to two hours', PARTS, 'all'],
  memory: ['build', 'decisions in memory beside peers: CPU a decision, bytes a key', PARTS, 'memory'],
  mixed: ['build', 'decisions in memory beside other limiters in the process', PARTS, 'mixed'],
  redis: ['build redis', 'decisions over Redis beside peers: decisions a second, latency, CPU of the server', PARTS, 'redis'],
  http: ['build redis', 'CPU of a request under each framework, beside peers', PARTS, 'http'],
  'by-hand': ['build', 'CPU of a request under each framework, beside a limiter written by hand', PARTS, 'by-hand'],
  scale: ['build redis', 'millions of keys, several processes and a Cluster', PARTS, 'scale'],
  cluster: ['build redis', 'decisions over a Cluster of three, with groups and without', PARTS, 'cluster'],
  pages: ['', 'docs/benchmarks again from the figures of the last runs; measures nothing', PARTS, 'pages'],
  before: ['build redis postgres', 'this build beside an earlier commit', PARTS, 'before'],
  'memory-size': ['build', 'bytes a key in memory, for each algorithm', `${BENCH}/memory/size.js`],
  'redis-cpu': ['build redis', 'CPU inside Redis, bytes a key and round trips of each algorithm, beside peers', `${BENCH}/redis-cpu/main.js`],
  'growing-logs': ['build redis', 'the longest script of a log that grows to its limit, by SLOWLOG, and bytes an entry', `${BENCH}/redis-cpu/growing-logs.js`],
  several: ['build redis', 'two keys in one decision beside two calls, over Redis and in memory, and a union of a peer', `${BENCH}/several/main.js`],
  reservations: ['build redis', 'CPU of Redis to reserve and settle beside consuming and settling, and to consume beside 1,000 open ones', `${BENCH}/reservations/main.js`],
  outage: ['build redis', 'Express, Koa and Nest while Redis is stopped and killed under load, beside peers', `${BENCH}/outage/main.js`],
  outbound: ['build redis', "fleets under a provider's limit: 429s, throughput, gaps, order, beside peers", ...onSources, 'packages/outbound/test/proofs/run.ts'],
  adaptive: ['', 'simulated: fleets under unknown limits that halve; used, refused, latency, drift of a day, beside AIMD', ...onSources, 'packages/outbound/test/adaptive/run.ts'],
  machine: ['build redis', 'processes of one machine: machineStore beside Redis and a cluster limiter of a peer', `${BENCH}/machine/main.js`],
  postgres: ['build redis postgres', 'decisions over Postgres beside Redis and a peer, and bytes a key; about two minutes', `${BENCH}/postgres/main.js`],
  metrics: ['build', 'what a decision in memory takes more when it is observed, and when top keys are counted', `${BENCH}/metrics/main.js`],
  policies: ['build', 'CPU of a decision by a watched policy file beside one without', `${BENCH}/policies/main.js`],
  overrides: ['build redis', 'CPU of a decision in memory beside 10,000 overrides, and reads of records a second', `${BENCH}/overrides/main.js`],
  logs: ['build', 'access logs of 5,000,000 lines: lines a second and memory of sluice, beside goaccess', `${BENCH}/logs/main.js`],
  leases: ['build', 'simulated: a fleet of 1,000 processes with leases; over the limit, unused, unfair', `${CORE_TESTS}/leases/simulation/fleet.js`],
  budget: ['build', 'simulated: token budgets that are settled late; served as a share of the exact promise, and over it', `${CORE_TESTS}/algorithms/simulation/budget.js`],
}, {
  ...Object.fromEntries(['all', 'memory', 'mixed', 'redis', 'http', 'by-hand', 'scale', 'cluster'].map((name) => [name, '[--rounds N] [--only TEXT] [--large] [--dry]'])),
  before: '[REF] [--dir PATH] [--memory] [--machine] [--queue] [--http] [--redis] [--postgres] [--bar N] [--rounds N] [--only TEXT]',
  'memory-size': '[KEYS] [NAME]',
  'redis-cpu': '[ROUNDS]',
  several: '[ROUNDS]',
  reservations: '[ROUNDS]',
  outage: '[NAME...]',
  outbound: '[NAME...]',
  postgres: '[ROUNDS] [MS]',
  metrics: '[NAME...]',
  policies: '[ROUNDS]',
  overrides: '[ROUNDS]',
  logs: '[LINES] [CALLERS]',
  leases: '[PROCESSES] [SECONDS]',
})
