import { execFileSync } from 'node:child_process'

/** A process of its own, as Jest's worker frees what other tests have left while memory is measured. */
const PROGRAM = `
  const { longKeys } = await import('./packages/faults/src/rows/row-18-long-keys.ts')
  console.log(JSON.stringify(await longKeys()))
`

it('keys of 8,192 characters fill nothing beyond the bytes that docs/sizing.md names', () => {
  const args = ['--import', './scripts/sources/register.js', '--input-type=module', '-e', PROGRAM]
  const { pass, figure } = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  expect({ pass, figure }).toEqual({ pass: true, figure })
}, 120_000)
