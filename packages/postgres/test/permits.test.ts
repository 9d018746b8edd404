import type { PermitStep } from '@sluice/core/store'
import { postgresStore } from '@sluice/postgres'
import { onePostgres } from './one-postgres.js'

jest.setTimeout(60_000)

const database = onePostgres()

// As Redis does: core/test/stores/redis/semaphore.test.ts.
describe('a clock of Postgres that is set back by half an hour', () => {
  const SECOND = 1_000_000
  const BACK = 1800 * SECOND
  let now: number
  beforeEach(() => (now = 86_400 * SECOND))
  const asks = (name: string) => {
    const permits = postgresStore(database.pool, { clock: () => now }).permits!(name, 2000)
    return (step: PermitStep, ticket: number) => permits.ask(step, 'k', [ticket], 1)
  }

  it('makes no time of grace longer', async () => {
    const ask = asks('grace')
    await ask('poll', 1)
    expect(await ask('take', 2)).not.toEqual(['held'])
    now -= BACK
    expect(await ask('take', 2)).not.toEqual(['held'])
    now += SECOND
    expect(await ask('take', 2)).toEqual(['held'])
  })

  it('keeps no ticket of a dead process in the queue', async () => {
    const [holder, dead, other] = [asks('queue'), asks('queue'), asks('queue')]
    await holder('take', 1)
    await dead('wait', 1)
    await dead('wait', 2)
    now -= BACK
    await holder('release', 1) // the first of the queue has a permit that it does not claim
    expect(await other('take', 1)).not.toEqual(['held'])
    now += 3 * SECOND
    expect(await other('take', 1)).toEqual(['held'])
  })
})
