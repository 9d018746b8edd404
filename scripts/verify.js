// Checks what `npm test` leaves out, because it takes long, is random, or needs other versions or programs:
// npm run verify -- SUBJECT [ARGUMENT...].
import { onSources, runSubject } from './subjects.js'
import { leftOut } from './verify/left-out.js'

runSubject('verify', {
  'left-out': tests(
    'left-out',
    `all the tests that npm test leaves out, which are the next ${Object.keys(leftOut).length} subjects`,
  ),
  ...Object.fromEntries(Object.entries(leftOut).map(([name, { about }]) => [name, tests(name, about)])),
  faults: {
    about: 'the fault matrix in full, a line a row; numbers choose rows',
    needs: ['redis', 'build'],
    command: [...onSources, 'packages/core/test/faults/run.ts'],
  },
  alerts: {
    about:
      'the alerts that fire on the metrics of fault rows, as docs/runbook.md names them; numbers choose rows',
    needs: ['redis', 'build'],
    command: [
      'scripts/ensure/prometheus.js',
      process.execPath,
      ...onSources,
      'packages/core/test/faults/alerts/run.ts',
    ],
  },
  sabotage: {
    about: 'breaks one mechanism after another and shows that its row fails; numbers choose rows',
    needs: ['redis', 'build'],
    command: ['scripts/verify/sabotage.js'],
  },
  adapters: {
    about: 'every HTTP case x every adapter, and the lines that each adapter takes',
    needs: ['redis', 'build'],
    command: ['scripts/verify/adapters.js'],
  },
  journey: {
    about: 'the files, functions and promises that one request passes through, or one call that goes out',
    needs: ['redis'],
    command: [...onSources, 'scripts/verify/journey.js'],
  },
  mutation: {
    about: 'how many deliberate mistakes in the algorithms the tests catch; files choose sources',
    needs: [],
    command: ['scripts/verify/mutation.js'],
  },
  nest11: {
    about: 'the tests of packages/nest on Nest 11: Express, Fastify, Apollo, Mercurius, ws and socket.io',
    needs: ['redis', 'build'],
    install: 'packages/nest/fixtures/nest11',
    command: ['node_modules/jest/bin/jest.js', '--config', 'packages/nest/fixtures/nest11/jest.config.ts'],
  },
  graphql: {
    about: 'CPU of the Nest guard for a GraphQL request of 12,000 operations, each figure below 60 ms',
    needs: ['build'],
    command: ['packages/nest/test/many-operations.js'],
  },
  machine: {
    about:
      'that machineStore counts exactly under fork, node:cluster, worker threads, plain services and PM2',
    needs: ['build'],
    install: 'scripts/verify/machine',
    command: ['scripts/verify/machine/run.js'],
  },
  newcomer: {
    about: "README's commands, as a user made for it, without root and without Redis; needs root on Linux",
    needs: [],
    command: ['scripts/verify/newcomer.js'],
  },
  imports: {
    about: 'what each package takes to install and to load, beside peers',
    needs: ['build'],
    command: ['packages/bench/src/imports/main.js'],
  },
  runtimes: {
    about: 'the built packages on Node 20, 22, 24 and 26, Bun, Deno and workerd',
    needs: ['redis', 'build'],
    install: 'scripts/verify/runtimes',
    command: ['scripts/verify/runtimes/run.js'],
  },
})

/**
 * @param {string} name
 * @param {string} about
 * @returns {import('./subjects.js').Subject}
 */
function tests(name, about) {
  return { about, needs: ['redis', 'build'], command: ['scripts/verify/tests.js', name] }
}
