// The tests that `npm test` leaves out, by subject of `npm run verify`: they are long and random, or need a server beside
// one Redis. .ci/run runs all of them.
import { existsSync, readdirSync } from 'node:fs'

/**
 * @typedef {object} LeftOut
 * @property {string} about
 * @property {readonly string[]} tests Paths of files.
 * @property {boolean} [shortened] `npm test` runs them too, with fewer random sequences or requests.
 */

/**
 * Random sequences in `npm test`: of the conformance kit and of mutated logs, 10,000 in full, and of each lease's bound, 25. And the
 * requests that make a load of the adapters' kit, 4,000 in full, whose denials have ids then.
 */
export const FEW_RUNS = {
  CONFORMANCE_RUNS: '100',
  KIT_DENIAL_IDS: 'none',
  KIT_REQUESTS: '1000',
  LEASE_RUNS: '5',
  LOG_RUNS: '500',
}

/** Each call of the kit waits for its transaction, so that the laws alone take longer than on all other stores together. */
const ON_POSTGRES = 'packages/postgres/test/store.conformance.test.ts'

/** @type {Readonly<Record<string, LeftOut>>} */
export const leftOut = {
  conformance: {
    about: 'random sequences in full: 10,000 of the conformance kit, and 25 for the bound of leases',
    tests: [
      ...testsOfPackages(/\bstore\.conformance\.test\.ts$/).filter((path) => path !== ON_POSTGRES),
      'docs/test/recipes/sqlite.test.ts',
      'docs/test/stores.test.ts',
      'packages/core/test/leases/bound.test.ts',
    ],
    shortened: true,
  },
  load: {
    about:
      "the adapters' kit in full: 4,000 requests over 200 connections, 200 that are reset, and an id in each denial",
    tests: testsOfPackages(/\bkit(?:-\w+)?\.test\.ts$/),
    shortened: true,
  },
  logs: {
    about: '10,000 mutated logs, 1,000 command lines of strangers, and replays beside live limiters in full',
    tests: [
      'packages/cli/test/reading.test.ts',
      'packages/cli/test/replay-is-live.test.ts',
      'packages/cli/test/strangers.test.ts',
    ],
    shortened: true,
  },
  'conformance-postgres': { about: 'the conformance kit on Postgres', tests: [ON_POSTGRES] },
  bytes: {
    about:
      'the conformance kit on stores of bytes: one that locks a key, and two that compare before they write',
    tests: ['packages/core/test/stores/bytes/keyspace-over.conformance.test.ts'],
  },
  topologies: {
    about:
      'connections of core, Cluster, Sentinel and replicas, through outages of each, and the conformance kit on a Cluster',
    tests: [
      'packages/cli/test/operate-acl.test.ts',
      'packages/cli/test/operate-topologies.test.ts',
      'packages/core/test/stores/redis/groups.conformance.test.ts',
      'packages/core/test/stores/redis/clients-own.test.ts',
      'packages/core/test/stores/redis/clients-process.test.ts',
      'packages/core/test/stores/redis/clients-replay.test.ts',
      'packages/core/test/stores/redis/semaphore-topologies.test.ts',
      'packages/core/test/stores/redis/subscriptions.test.ts',
      'packages/core/test/stores/redis/topologies.test.ts',
      'packages/harness/test/redis/cluster.test.ts',
      'packages/harness/test/redis/replica.test.ts',
      'packages/harness/test/redis/sentinel.test.ts',
    ],
  },
  'fault-rows': {
    about:
      'the rows of the fault matrix that assert no times, at a twentieth of their load, and the longest parts of others',
    tests: [
      'packages/faults/test/faults.test.ts',
      'packages/faults/test/handed-in.test.ts',
      'packages/faults/test/leased-fleet.test.ts',
      'packages/faults/test/long-keys.test.ts',
    ],
  },
  simulated: {
    about:
      'the server of simulations beside a real Redis, by 10,000 calls, and the traces of 50 seeds, each twice',
    tests: ['packages/simulation/test/same-trace.test.ts', 'packages/simulation/test/stand-in.test.ts'],
  },
  proofs: {
    about: 'the proofs of outbound calls by fleets of processes, at a twentieth of their load',
    tests: ['packages/outbound/test/proofs/proofs.test.ts'],
  },
  clients: {
    about: 'SDKs and HTTP clients under an outbound limit, with the retries of their own',
    tests: ['packages/harness/clients/test/outbound-clients.test.ts'],
  },
  'other-promises': {
    about: 'what a store, a semaphore or a listener returns, under the Promises of zone.js and bluebird',
    tests: ['packages/harness/promises/test/other-promises.test.ts'],
  },
  written: {
    about:
      'what is written for programs of others: the manifests of docs/recipes/deploy, and the check of workflows',
    tests: ['packages/harness/deploy/test/deploy.test.ts', 'scripts/check/workflows/test/workflows.test.ts'],
  },
  releases: {
    about: 'what a release is made of: versions, tarballs, every style of import, and the SBOM',
    tests: ['scripts/test/installs.test.ts', 'scripts/test/tarballs.test.ts', 'scripts/test/version.test.ts'],
  },
  applications: {
    about: 'the applications of docs/migrate, each started with the other package and with Sluice',
    tests: ['docs/test/migrate.test.ts'],
  },
  examples: {
    about:
      'examples in real time: a fleet, workers at a provider, an outage that Prometheus watches, and the demo from start to end',
    tests: [
      'examples/test/fleet-worker.test.ts',
      'examples/test/observability.test.ts',
      'examples/test/payments-worker.test.ts',
      'packages/demo/test/demo.test.ts',
    ],
  },
}

for (const path of Object.values(leftOut).flatMap(({ tests }) => tests)) {
  if (!existsSync(path)) throw new Error(`scripts/verify/left-out.js names ${path}, which does not exist`)
}

/**
 * The paths of the tests of all packages whose file names match, so that those of a store or adapter that is added are among them.
 * @param {RegExp} name
 */
function testsOfPackages(name) {
  const folders = readdirSync('packages').map((each) => `packages/${each}/test`)
  return folders.filter(existsSync).flatMap((folder) => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    return files.filter((file) => name.test(file)).map((file) => `${folder}/${file.replaceAll('\\', '/')}`)
  })
}
