// Runs rows of the fault matrix in full, outside of Jest: npm run verify -- faults [18 20]
import { build } from 'esbuild'
import { resolve } from 'node:path'

const outfile = 'node_modules/.cache/faults.mjs'
await build({
  entryPoints: ['packages/core/test/faults/run.ts'],
  outfile,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  // The sources, as in Jest and in the processes of a fleet.
  alias: {
    '@sluice/core/redis': resolve('packages/core/src/stores/redis/index.ts'),
    '@sluice/core/http': resolve('packages/core/src/http/index.ts'),
    '@sluice/core': resolve('packages/core/src/index.ts'),
  },
})
await import(`../../${outfile}`)
