// Checks what `npm test` leaves out, because it takes long, is random, or needs other versions or programs:
// npm run verify -- SUBJECT [ARGUMENT...].
import { onSources, runSubject } from './subjects.js'
import { leftOut } from './verify/left-out.js'

const groups = Object.values(leftOut)
const FAULTS = 'packages/faults/src'

// prettier-ignore
runSubject('verify', {
  'left-out': tests(`all the tests that npm test leaves out, which are the next ${groups.length} subjects`, ...groups),
  ...Object.fromEntries(Object.entries(leftOut).map(([name, group]) => [name, tests(group.about, group)])),
  faults: ['redis postgres build', 'the fault matrix in full, a line a row; numbers choose rows', ...onSources, `${FAULTS}/run.ts`],
  simulation: ['lua', 'a fleet, its server and its network in one process, by plans from one seed after the other; --seed N runs one, --minutes N as many as fit', '--max-semi-space-size=64', ...onSources, 'packages/simulation/src/run.ts'],
  alerts: ['redis prometheus build', 'the alerts that fire on the metrics of fault rows, as docs/runbook.md names them; numbers choose rows', ...onSources, `${FAULTS}/alerts/run.ts`],
  promises: ['redis build', 'the kits of adapters and stores under another global Promise: a subclass, and that of zone.js', 'node_modules/jest/bin/jest.js', '--config', 'packages/harness/promises/jest.config.js', '--testNamePattern', '^(?!.*callers that do not hang up)'],
  sabotage: ['redis postgres build', 'breaks one mechanism after another and shows that its row fails; numbers choose rows; --simulated has the simulation find them, --only TEXT some'],
  adapters: ['redis build', 'every HTTP case x every adapter', 'packages/harness/src/adapters/table.js'],
  journey: ['redis', 'the files, functions and promises that one request passes through, or one call that goes out', ...onSources, '--import', './scripts/verify/journey/entries.js', 'scripts/verify/journey.js'],
  mutation: ['', 'how many deliberate mistakes in the algorithms the tests catch; files choose sources', 'scripts/verify/mutation/run.js'],
  'further-algorithm': ['redis', 'the playground, the picture and the benches with one algorithm more than there are, in a copy of the sources'],
  calendars: ['build', 'the boundaries of calendars in every zone of the runtime beside those by another algorithm, 10,000 instants a zone, and its zone data beside that of the system; a number of instants'],
  migrate: ['redis build', 'every row of docs/migrate, on the other package and on Sluice; pages choose', ...onSources, 'scripts/verify/migrate.js'],
  nest11: ['redis build', 'the tests of packages/nest on Nest 11: Express, Fastify, Apollo, Mercurius, ws and socket.io', 'node_modules/jest/bin/jest.js', '--config', 'packages/nest/fixtures/nest11/jest.config.js'],
  graphql: ['build', 'CPU of the Nest guard for a GraphQL request of 12,000 operations, each figure below 60 ms', 'packages/nest/test/many-operations.js'],
  machine: ['build', 'that machineStore counts exactly under fork, node:cluster, worker threads, plain services and PM2', 'packages/machine/test/ways/run.js'],
  stream: ['build', 'that sluice reads a log of 10 GB from stdin in memory that grows with callers and not with lines, about 15 minutes; `stream 1` reads 1 GB', 'packages/bench/src/logs/stream.js'],
  newcomer: ['build', "the first route of each adapter, from npm init by the docs alone (`newcomer routes`); README's commands as a user made for it, without root and Redis"],
  site: ['chromium build', 'the site in Chromium: the playground beside Node, its borders, sizes, keyboard, axe, paths; `site typing` is one part, `site pictures` draws the screenshots', ...onSources, 'site/verify.js'],
  imports: ['build', 'what each package takes to install and to load, beside peers', 'packages/bench/src/imports/main.js'],
  frameworks: ['build', 'the recipes for Next.js and SvelteKit, on both as built for production', 'packages/harness/frameworks/run.js'],
  sdks: ['build', 'how often SDKs send a refused call, with their defaults and as docs/outbound-clients.md sets them; names choose', 'packages/harness/clients/sdks.js'],
  'clients-429': ['build', 'how long HTTP clients and SDKs wait after a 429, beside docs/clients.md, about two minutes; --write writes its tables', '--no-deprecation', '--no-warnings', 'packages/harness/clients/after-429.js'],
  gateways: ['servers build', 'what gateways do to a limit behind them, beside docs/http.md, about three minutes; --write writes its table', 'packages/harness/gateways/run.js'],
  'redis-servers': ['redis build', 'whether limits are exact on servers and proxies that speak Redis, beside docs/which-redis.md; --server URL asks one of yours, --write writes the table', '--no-warnings', 'packages/harness/redis-servers/run.js'],
  'three-am': ['redis build', 'from the id in the answer of a caller whom a fleet refuses to his next request, by the commands on a store, in under ten seconds', 'packages/harness/three-am/run.js'],
  'acts-under-load': ['redis postgres build', 'what the commands on a store cost the decisions of four processes: p99 in turns without and beside them, on Redis and Postgres, about two minutes', 'packages/harness/three-am/load.js'],
  'log-samples': ['servers build', 'makes the samples of logs in packages/cli/test/samples anew, by the programs of Debian and npm that write them; names choose', 'packages/harness/log-samples/run.js'],
  'postgres-versions': ['redis postgres build', 'the conformance kit, the tests and the row of faults of postgresStore on Postgres 15 to 18; versions choose', 'packages/harness/postgres-versions/run.js'],
  engines: ['build', 'the recipes for SQLite and MariaDB: four processes that race, and the conformance kit on SQLite', ...onSources, 'packages/harness/engines/run.js'],
  runtimes: ['redis postgres build', 'the built packages and recipes on Node 20, 22, 24 and 26, Bun (with Bun.SQL), Deno and workerd; names choose', 'packages/harness/runtimes/run.js'],
}, {
  ...Object.fromEntries(['left-out', ...Object.keys(leftOut), 'promises', 'nest11'].map((name) => [name, '[-t TEXT] [OPTION OF JEST...]'])),
  faults: '[ROW...]',
  simulation: '[--seed N] [--kept] [--from N] [--minutes N] [--least N] [--schedules N] [--mistakes] [--only TEXT] [--write] [--whole] [--digests]',
  alerts: '[ROW...]',
  sabotage: '[ROW...] [--simulated] [--only TEXT] [--write]',
  mutation: '[PATH...]',
  calendars: '[INSTANTS]',
  migrate: '[NAME...]',
  stream: '[GIGABYTES]',
  newcomer: '[NAME]',
  site: '[NAME...]',
  sdks: '[NAME...]',
  'clients-429': '[--write]',
  gateways: '[--write]',
  'redis-servers': '[--server URL] [--write]',
  'log-samples': '[NAME...]',
  'postgres-versions': '[VERSION...]',
  runtimes: '[NAME...]',
})

/**
 * @param {string} about
 * @param {readonly import('./verify/left-out.js').LeftOut[]} groups
 * @returns {import('./subjects.js').Subject}
 */
function tests(about, ...groups) {
  const paths = groups.flatMap(({ tests }) => tests)
  return ['redis build', about, 'node_modules/jest/bin/jest.js', '--runTestsByPath', ...paths]
}
