import { type AdaptiveLimit, createSemaphore, memoryStore, type SemaphoreEvents } from '../../src/index.js'
import { outcome } from './permits-elsewhere.js'

type Ended = { readonly ms: number; readonly refused: boolean; readonly waited: boolean }

/** A limit of 1 that becomes the number that a test sets when a call ends, and the calls that it has seen. */
function stepped() {
  const seen: Ended[] = []
  const next = { limit: 1 }
  const limit: AdaptiveLimit = {
    initial: 1,
    follow() {
      const followed = {
        limit: 1,
        ended(ms: number, refused: boolean, waited: boolean) {
          seen.push({ ms, refused, waited })
          followed.limit = next.limit
          return 'served' as const
        },
      }
      return followed
    },
  }
  return { limit, seen, next }
}

const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

beforeEach(() => jest.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => jest.useRealTimers())

it('serves waiting calls under the new limit when a call ends, and reports the change', async () => {
  const { limit, next } = stepped()
  const semaphore = createSemaphore({ limit })
  const events: SemaphoreEvents['adapted'][] = []
  semaphore.on('adapted', (event) => events.push(event))
  const first = await semaphore.acquire('a')
  const waiting = [1, 2, 3].map(() => outcome(semaphore.acquire('a')))
  next.limit = 2
  await first.release()
  await pass(0)
  expect(waiting.map(({ permit }) => permit?.allowed)).toEqual([true, true, undefined])
  await waiting[0]!.permit!.release()
  expect(events).toEqual([
    { type: 'adapted', semaphore: 'default', key: 'a', limit: 2, from: 1, reason: 'served' },
  ])
  expect([semaphore.limitOf('a'), semaphore.limitOf('b'), semaphore.limit]).toEqual([2, 1, 1])
})

it('holds waiting calls back under a lower limit', async () => {
  const { limit, next } = stepped()
  const semaphore = createSemaphore({ limit })
  next.limit = 2
  await (await semaphore.acquire()).release()
  const held = await Promise.all([semaphore.acquire(), semaphore.acquire()])
  const waiting = outcome(semaphore.acquire())
  next.limit = 1
  await held[0].release()
  await pass(0)
  expect(waiting.permit).toBeUndefined()
  await held[1].release()
  await pass(0)
  expect(waiting.permit?.allowed).toBe(true)
})

it('sees of each call how long it took, whether it was refused, and whether it had to wait', async () => {
  const { limit, seen } = stepped()
  const semaphore = createSemaphore({ limit })
  const first = await semaphore.acquire()
  const second = semaphore.acquire()
  await pass(30)
  await first.release()
  await (await second).release('refused', 7)
  expect(seen).toEqual([
    { ms: 30, refused: false, waited: false },
    { ms: 7, refused: true, waited: true },
  ])
})

it('does not see a call that failed, nor the second release of a permit', async () => {
  const { limit, seen } = stepped()
  const semaphore = createSemaphore({ limit })
  await (await semaphore.acquire()).release('failed')
  const permit = await semaphore.acquire()
  await permit.release()
  await permit.release()
  expect(seen).toHaveLength(1)
})

it('follows at most 1,000 keys', async () => {
  const { limit, next } = stepped()
  const semaphore = createSemaphore({ limit })
  next.limit = 2
  for (let i = 0; i <= 1000; i++) await (await semaphore.acquire(`${i}`)).release()
  expect([semaphore.limitOf('0'), semaphore.limitOf('1'), semaphore.limitOf('1000')]).toEqual([1, 2, 2])
})

it('ends when the semaphore gets another limit', async () => {
  const { limit, next } = stepped()
  const semaphore = createSemaphore({ limit })
  next.limit = 5
  await (await semaphore.acquire()).release()
  semaphore.resize(3)
  await (await semaphore.acquire()).release()
  expect([semaphore.limitOf(), semaphore.limit]).toEqual([3, 3])
})

it('is refused with a store: each process has a limit of its own', () => {
  const { limit } = stepped()
  expect(() => createSemaphore({ name: 'a', limit, store: memoryStore() })).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining('leave out store') }),
  )
})
