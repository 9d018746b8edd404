import { rows } from './rows.js'

describe.each(rows.map((row) => [`row ${row.number}, ${row.fault}`, row] as const))('%s', (_, row) => {
  it('survives a tenth of the load', async () => {
    const outcome = await row.run(0.1)
    expect(outcome).toEqual({ pass: true, figure: outcome.figure })
  }, 60_000)
})
