import { expectWarnings } from '@sluice/harness/warnings'
import { row } from '../src/rows/row-47-killed-connections.js'

it('connections that are killed again and again leave no rejection without an owner, and no permit away', async () => {
  expectWarnings(row.warnings!, { perhaps: row.perhaps! })
  const { pass, figure } = await row.run(0)
  expect({ pass, figure }).toEqual({ pass: true, figure })
}, 60_000)
