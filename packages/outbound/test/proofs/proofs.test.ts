import { proofs } from './proofs.js'

jest.setTimeout(60_000)

/** A twentieth of the load of scripts/measure-outbound.js, and without its times: machines are shared. */
it.each(proofs.map((proof) => [proof.title, proof] as const))('%s', async (_, proof) => {
  const { holds, figure } = await proof.run(0.05)
  expect({ holds, figure }).toEqual({ holds: true, figure })
})
