import { createLimiter, createSemaphore, fixedWindow, memoryStore } from '../../src/index.js'
import { machineClock, systemClock } from '../../src/values/clock.js'

/* In workerd a module is loaded while the monotonic clock stands at 0, and each request finds it on the scale of the wall clock. */

const HOUR_MS = 3_600_000
const WALL_MS = Date.UTC(2026, 10, 28, 14, 39)

afterEach(() => jest.restoreAllMocks())

/** Runs `load` as workerd loads a module, and then begins a request. */
function loaded<T>(load: () => T): T {
  jest.spyOn(Date, 'now').mockReturnValue(WALL_MS)
  const monotonic = jest.spyOn(performance, 'now').mockReturnValue(0)
  const made = load()
  monotonic.mockReturnValue(WALL_MS)
  return made
}

describe.each([
  ['systemClock', systemClock],
  ['machineClock', machineClock],
])('%s', (_, clock) => {
  it('tells the time of the wall clock, where time stood still when it was made', () => {
    expect(loaded(clock)()).toBe(WALL_MS * 1000)
  })

  it('does not follow a wall clock that is set after its first use', () => {
    const now = loaded(clock)
    now()
    jest.spyOn(Date, 'now').mockReturnValue(WALL_MS + HOUR_MS)
    expect(now()).toBe(WALL_MS * 1000)
  })
})

it('has windows from the epoch on for a limiter of a module, whatever is made beside it', async () => {
  const { limiter, semaphore } = loaded(() => {
    const store = memoryStore()
    return {
      limiter: createLimiter({ name: 'm', policies: [fixedWindow({ limit: 3, window: '1h' })], store }),
      semaphore: createSemaphore({ name: 's', limit: 1, store }),
    }
  })
  expect((await limiter.consume('k')).resetAfterMs).toBe(21 * 60_000)
  await semaphore.close()
})
