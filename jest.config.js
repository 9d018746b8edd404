import { availableParallelism } from 'node:os'

/** @satisfies {import('jest').Config} */
const config = {
  testEnvironment: `./packages/harness/src/environments/${process.env['SLUICE_WITHOUT_REDIS'] ? 'without-redis' : 'own-storages'}.js`,
  reporters: ['default', '<rootDir>/packages/harness/src/environments/stray-output.js'],
  // On a busy machine a worker with much memory takes longer than 500 ms to end. What a file leaves open fails the file.
  workerGracefulExitTimeout: 10_000,
  maxWorkers: Math.ceil(1.5 * availableParallelism()), // a fifth of the time goes into waiting for servers
  testTimeout: 30_000, // nothing is asserted about speed, and two tests of many calls took 5 s on a busy machine
  // A global that a test's own context is asked for costs 20 times as much as one that is handed in, which decides
  // how long a loop with `Math` takes. Nothing may be here that a fake clock replaces, or that a package declares itself.
  sandboxInjectedGlobals: [
    'Array',
    'DataView',
    'Float64Array',
    'Infinity',
    'Map',
    'Math',
    'Number',
    'Object',
    'Set',
    'WeakMap',
  ],
  testMatch: ['<rootDir>/{packages,examples,docs,scripts,site}/**/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/\\.stryker-tmp'],
  testPathIgnorePatterns: ['/node_modules/', '/dist/'],
  transform: {
    // Mercurius' streams declare a constant `Number`: as a `var` it may stand beside the one that is handed in.
    '/readable-stream/.+\\.js$': ['@swc/jest', { jsc: { target: 'es5' }, sourceMaps: 'inline' }],
    '^.+\\.[cm]?[jt]s$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          keepClassNames: true,
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
  transformIgnorePatterns: [
    '/node_modules/(?!(?:@nestjs|light-my-request|node-fetch|fetch-blob|data-uri-to-buffer|formdata-polyfill|mercurius|readable-stream|quick-lru|cac|h3|rou3|srvx|temporal-polyfill|temporal-utils)/)',
  ],
  // Tests run the sources: the workspace's own packages, and '.js' in an import that is a '.ts' on disk.
  moduleNameMapper: {
    '^@sluice/core/internal$': '<rootDir>/packages/core/src/internal.ts',
    '^@sluice/core/redis$': '<rootDir>/packages/core/src/stores/redis/index.ts',
    '^@sluice/core/store$': '<rootDir>/packages/core/src/stores/authoring.ts',
    '^@sluice/policies/node$': '<rootDir>/packages/policies/src/node.ts',
    '^@sluice/testing/internal$': '<rootDir>/packages/testing/src/conformance/index.ts',
    '^@sluice/harness/([a-z]+)$': '<rootDir>/packages/harness/src/$1/index.ts',
    '^@sluice/([a-z]+)$': '<rootDir>/packages/$1/src/index.ts',
    '^(\\.{1,2}/.*)\\.js$': ['$1.ts', '$1.js'],
  },
}

export default config
