import { expectWarnings } from '@sluice/harness/warnings'
import { rows } from '../src/matrix.js'

const quick = rows.filter(({ timed, tested }) => !timed && !tested)

describe.each(quick.map((row) => [`row ${row.number}, ${row.fault}`, row] as const))('%s', (_, row) => {
  it('survives a twentieth of the load', async () => {
    expectWarnings(row.warnings ?? [], { perhaps: row.perhaps ?? [] })
    const outcome = await row.run(0.05)
    expect(outcome).toEqual({ pass: true, figure: outcome.figure })
  }, 180_000)
})
