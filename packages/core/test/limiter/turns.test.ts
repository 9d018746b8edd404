import { RemoteStore } from '@sluice/harness/stores'
import { createLimiter, gcra, leakyBucket, type Limiter, memoryStore } from '../../src/index.js'

/** Timers as Node keeps them: in lists by duration. All that are due in one list run before those of the next. */
class NodeTimers {
  now = 0
  most = 0
  readonly #lists = new Map<number, { readonly due: number; readonly call: () => void }[]>()

  get count(): number {
    return [...this.#lists.values()].flat().length
  }

  readonly set = (call: () => void, ms: number): object => {
    const timer = { due: this.now + Math.max(1, ms), call }
    this.#lists.set(ms, [...(this.#lists.get(ms) ?? []), timer])
    this.most = Math.max(this.most, this.count)
    return timer
  }

  readonly clear = (timer?: object): void => {
    for (const [ms, list] of this.#lists) {
      this.#lists.set(
        ms,
        list.filter((each) => each !== timer),
      )
    }
  }

  run(): void {
    const lists = [...this.#lists].filter(([, list]) => list.length > 0)
    for (const [ms, list] of lists.sort(([, one], [, other]) => one[0]!.due - other[0]!.due)) {
      this.#lists.set(
        ms,
        list.filter(({ due }) => due > this.now),
      )
      for (const { due, call } of list) if (due <= this.now) call()
    }
  }
}

let timers: NodeTimers
let limiter: Limiter

beforeEach(() => {
  timers = new NodeTimers()
  jest.spyOn(globalThis, 'setTimeout').mockImplementation(timers.set as never)
  jest.spyOn(globalThis, 'clearTimeout').mockImplementation(timers.clear as never)
  limiter = createLimiter({
    name: 'test',
    policies: [gcra({ limit: 1000, window: '1s', burst: 1 })],
    store: memoryStore({ clock: () => timers.now * 1000 }),
  })
})
afterEach(() => jest.restoreAllMocks())

/** The process has nothing else to do for `ms` milliseconds. */
async function idle(ms: number): Promise<void> {
  for (let i = 0; i < ms; i++) {
    timers.now++
    timers.run()
    await new Promise(setImmediate)
  }
}

it('serves 5,000 calls in the order of their turns while the process is busy now and then, with one timer', async () => {
  const served: number[] = []
  const call = (i: number) => void limiter.acquire('k').then(() => served.push(i))
  let called = 0
  for (let bunch = 0; bunch < 100; bunch++) {
    for (let i = 0; i < 50; i++) call(called++)
    // Ten times no timer runs for 50 ms.
    timers.now += bunch % 10 === 5 ? 50 : 0
    await idle(bunch % 3 === 0 ? 37 : 53)
  }
  await idle(1000)
  expect(served).toHaveLength(5000)
  expect(served.filter((i, place) => i !== place)).toEqual([])
  expect(timers.most).toBe(2) // that of the store, which sweeps, and that of the next turn
})

it('serves a call whose turn comes at once after those whose turns have passed', async () => {
  const served: string[] = []
  for (const name of 'abcd') void limiter.acquire('k').then(() => served.push(name))
  timers.now += 50 // and no timer has run yet
  void limiter.acquire('k').then(() => served.push('e'))
  await new Promise(setImmediate)
  expect(served.join('')).toBe('abcde')
})

it('moves its timer to the next turn when a call leaves, and stops it with the last', async () => {
  const [first, second] = [new AbortController(), new AbortController()]
  await limiter.acquire('k')
  const set = jest.mocked(setTimeout).mock.calls.length
  const calls = [first, second].map(({ signal }) => limiter.acquire('k', { signal }).catch(String))
  first.abort('left')
  await idle(0)
  expect(jest.mocked(setTimeout)).toHaveBeenCalledTimes(set + 2)
  second.abort('left')
  expect(await Promise.all(calls)).toEqual(['left', 'left'])
  expect(timers.count).toBe(1) // that of the store
})

describe('over a store elsewhere', () => {
  let store: RemoteStore
  let served: string

  beforeEach(() => {
    store = new RemoteStore(() => timers.now * 1000)
    const policies = [leakyBucket({ limit: 1000, window: '1s', capacity: 300 })]
    limiter = createLimiter({ name: 'test', policies, store, deadline: '1m' })
    served = ''
  })

  const call = (name: string, cost: number): Promise<unknown> =>
    limiter.acquire('k', { cost }).then(() => (served += name))

  it('serves a call whose reply was quick after those whose replies were late', async () => {
    store.holdReplies()
    void call('a', 300)
    void call('b', 1)
    await idle(5)
    store.recover()
    void call('c', 1)
    await idle(20)
    expect(served).toBe('abc')
  })

  it('serves a call after those before it whose places are being confirmed', async () => {
    await call('a', 300)
    void call('b', 260)
    await idle(100)
    void call('c', 1)
    await idle(100)
    store.holdReplies()
    await idle(80)
    expect(served).toBe('a')
    store.recover()
    await idle(1)
    expect(served).toBe('abc')
  })

  describe('serves a call after one before it whose place is being confirmed, though one in between', () => {
    /** Has b wait for its confirmation when the turn of c comes. `beside` is done before c is called, and `later` after that. */
    const order = async (beside: () => unknown, later?: () => unknown): Promise<string> => {
      await call('a', 300)
      void call('b', 260)
      await beside()
      await idle(100)
      void call('c', 1)
      await idle(100)
      await later?.()
      store.holdReplies()
      await idle(80)
      store.recover()
      await idle(1)
      return served
    }

    it.each(['before', 'after'] as const)('has hung up, %s the call', async (when) => {
      const caller = new AbortController()
      let leaving: Promise<unknown>
      const leave = async (): Promise<void> => {
        caller.abort('left')
        await expect(leaving).rejects.toBe('left')
      }
      const beside = (): unknown => {
        leaving = limiter.acquire('k', { signal: caller.signal })
        leaving.catch(() => {})
        return when === 'before' ? idle(1).then(leave) : undefined
      }
      expect(await order(beside, when === 'after' ? leave : undefined)).toBe('abc')
    })

    it('was decided by the failure mode', async () => {
      const degraded = async (): Promise<void> => {
        store.fail('STORE_OOM')
        await call('x', 300)
        void call('y', 290)
        await idle(1)
        store.recover()
      }
      expect(await order(degraded)).toBe('axbc')
      await idle(100)
      expect(served).toBe('axbcy')
    })
  })
})
