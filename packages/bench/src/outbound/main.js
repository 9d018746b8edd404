// Measures what is promised of outbound calls, with a fleet of processes, a real Redis and a provider that keeps a limit
// its own way; about nine minutes, or what is chosen of known, unknown, even, order, trouble, peers, clients, queue, soak
// and shutdown: npm run bench -- outbound known peers
import { build } from 'esbuild'
import { resolve } from 'node:path'

const outfile = 'packages/outbound/dist/proofs.js'
await build({
  entryPoints: ['packages/outbound/test/proofs/run.ts'],
  outfile,
  bundle: true,
  packages: 'external',
  platform: 'node',
  format: 'esm',
  // The sources, as in Jest and in the workers.
  alias: {
    '@sluice/core/redis': resolve('packages/core/src/stores/redis/index.ts'),
    '@sluice/core': resolve('packages/core/src/index.ts'),
  },
})
await import(`../../../../${outfile}`)
