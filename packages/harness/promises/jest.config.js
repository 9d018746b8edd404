import { resolve } from 'node:path'
import base from '../../../jest.config.js'

const rootDir = resolve('.')
// As few as in `npm test`: a Promise that is wrong is so in each sequence.
process.env['CONFORMANCE_RUNS'] ??= '100'
process.env['KIT_REQUESTS'] ??= '1000'

const KITS = [
  '<rootDir>/packages/{express,fastify,hono,http,koa,nest}/test/kit*.test.ts',
  '<rootDir>/packages/{core,machine}/test/**/store.conformance.test.ts',
]

/**
 * The kits of adapters and of stores under each global Promise. What async functions return is no instance of these. Not under
 * bluebird, with which the kits' own clients and clocks do not work: test/other-promises.test.ts has it.
 * @satisfies {import('jest').Config}
 */
const config = {
  rootDir,
  testTimeout: base.testTimeout,
  reporters: base.reporters,
  projects: ['a subclass', 'zone.js'].map((promise) => {
    const {
      testTimeout: _,
      maxWorkers: _workers,
      reporters: _reporters,
      workerGracefulExitTimeout: _exit,
      ...project
    } = base
    return {
      ...project,
      rootDir,
      displayName: promise,
      testEnvironment: './packages/harness/promises/environment.js',
      // Jest warns of a Promise of zone.js that is used after its file.
      testEnvironmentOptions: { promise, globalsCleanup: 'off' },
      testMatch: KITS,
    }
  }),
}

export default config
