import { rows } from './rows.js'

const untimed = rows.filter((row) => !row.timed)

describe.each(untimed.map((row) => [`row ${row.number}, ${row.fault}`, row] as const))('%s', (_, row) => {
  it('survives a twentieth of the load', async () => {
    const outcome = await row.run(0.05)
    expect(outcome).toEqual({ pass: true, figure: outcome.figure })
  }, 180_000)
})
