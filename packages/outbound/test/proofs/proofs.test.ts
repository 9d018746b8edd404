import { proofs } from './proofs.js'

jest.setTimeout(60_000)

/** A twentieth of the load of `npm run bench -- outbound`, without what depends on how busy the machine is. */
const untimed = proofs.filter(({ timed }) => !timed)

it.each(untimed.map((proof) => [proof.title, proof] as const))('%s', async (_, proof) => {
  const { holds, figure } = await proof.run(0.05)
  expect({ holds, figure }).toEqual({ holds: true, figure })
})
