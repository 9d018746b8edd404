// Runs rows of the fault matrix in full, outside of Jest: npm run test:faults [-- 18 20]
import { build } from 'esbuild'

const outfile = 'packages/core/dist/faults.js'
const entryPoints = ['packages/core/test/faults/run.ts']
await build({ entryPoints, outfile, bundle: true, packages: 'external', platform: 'node', format: 'esm' })
await import(`../${outfile}`)
