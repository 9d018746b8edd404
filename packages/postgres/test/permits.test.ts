import type { PermitStep } from '@sluice/core/store'
import { postgresStore } from '@sluice/postgres'
import { KeptPermits } from '../src/kept-permits.js'
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

// By more than an hour, as no lease is longer. Without the table, in which a sweep goes by the same clock.
it('leaves permits to holders that renew them where the clock is set back by two hours', () => {
  const SECOND = 1_000_000
  let now = 86_400 * SECOND
  let numbers: readonly number[] = []
  const ask = (semaphore: number, step: PermitStep, ticket = 1) => {
    const queue = new KeptPermits(numbers)
    const call = { step, semaphore, name: 'lost', key: 'k', tickets: [ticket], limit: 1, lease: 2 * SECOND }
    const [state] = queue.carryOut(call, now)
    numbers = queue.numbers
    return state
  }
  const [holder, dead, other] = [1, 2, 3] as const
  ask(holder, 'take')
  now -= 7200 * SECOND
  expect(ask(other, 'take')).toBe('unknown')
  now += SECOND / 2
  expect(ask(holder, 'renew')).toBe('held')
  now += SECOND / 2
  expect(ask(other, 'take', 2)).toBe('unknown')
  ask(holder, 'release')
  ask(dead, 'take')
  now -= 7200 * SECOND
  expect(ask(other, 'take', 3)).toBe('unknown')
  now += SECOND
  expect(ask(other, 'take', 4)).toBe('held')
})
