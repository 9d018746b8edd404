import { createLimiter, fixedWindow, type LimiterOptions } from '../../src/index.js'
import { guard } from '../../src/leases/leased-store.js'
import { memoryStore } from '../../src/stores/memory/index.js'
import type { Answer, Caller, Keyspace, Receiver, Store } from '../../src/stores/store.js'
import { StoreError } from '../../src/values/errors.js'

const policies = [fixedWindow({ limit: 5, window: '1h' })]

interface Received {
  readonly receiver: Receiver<Answer>
  readonly caller: Caller | undefined
  /** What the state in memory decides. */
  answer(): Answer
}

/** A store whose keyspaces have `consume`, and answer when the test says so. */
function receivingStore(asked: Received[], refusal?: Error): Store {
  const memory = memoryStore()
  return {
    guard,
    keyspace(name, list, report) {
      const state = memory.keyspace(name, list, report)
      const consume: Keyspace['consume'] = (key, cost, receiver, caller) => {
        if (refusal) throw refusal
        asked.push({ receiver, caller, answer: () => state.decide('consume', key, cost, 0) as Answer })
        return undefined
      }
      return Object.defineProperty(state, 'consume', { value: consume })
    },
    now: () => memory.now(),
    close: () => memory.close(),
  }
}

function open(options: Partial<LimiterOptions> = {}, refusal?: Error) {
  const asked: Received[] = []
  const store = receivingStore(asked, refusal)
  return { asked, limiter: createLimiter({ name: 'received', policies, store, ...options }) }
}

beforeEach(() => jest.useFakeTimers())
afterEach(() => jest.useRealTimers())

describe('a call whose store answers a receiver', () => {
  it('resolves with the decision that the store gives', async () => {
    const { asked, limiter } = open()
    const decision = limiter.consume('k', { cost: 2 })
    asked[0]!.receiver.answered(asked[0]!.answer())
    expect(await decision).toMatchObject({ allowed: true, remaining: 3, key: 'k', degraded: undefined })
  })

  it('takes the first outcome alone', async () => {
    const { asked, limiter } = open()
    const decision = limiter.consume('k')
    const { receiver, answer } = asked[0]!
    receiver.answered(answer())
    receiver.failed(new StoreError('STORE_ERROR', 'late'))
    receiver.answered(answer())
    expect(await decision).toMatchObject({ remaining: 4, degraded: undefined })
  })

  it('is decided by the failure mode where the call fails', async () => {
    const { asked, limiter } = open({ onStoreError: 'deny' })
    const decision = limiter.consume('k')
    asked[0]!.receiver.failed(new StoreError('STORE_OOM', 'full'))
    expect(await decision).toMatchObject({ allowed: false, reason: 'degraded', degraded: 'oom' })
  })

  it('is decided by the failure mode at the deadline, and a later answer is ignored', async () => {
    const { asked, limiter } = open({ onStoreError: 'allow', deadline: '20ms' })
    const decision = limiter.consume('k')
    await jest.advanceTimersByTimeAsync(30)
    expect(asked[0]!.caller!.gone).toBe(true)
    asked[0]!.receiver.answered(asked[0]!.answer())
    expect(await decision).toMatchObject({ allowed: true, degraded: 'timeout' })
  })

  it('rejects with what the store throws at once, if that is no outage', async () => {
    const refusal = new StoreError('CLOSED', 'the store is closed')
    const { limiter } = open({}, refusal)
    await expect(limiter.consume('k')).rejects.toBe(refusal)
  })

  it('rejects under onStoreError throw', async () => {
    const { asked, limiter } = open({ onStoreError: 'throw' })
    const decision = limiter.consume('k')
    const failure = new StoreError('STORE_ERROR', 'broken')
    asked[0]!.receiver.failed(failure)
    await expect(decision).rejects.toBe(failure)
  })
})
