import {
  calendarWindow,
  createLimiter,
  memoryStore,
  type MemoryStore,
  type Store,
  StoreError,
} from '@sluice/core'
import type { Reservations } from '@sluice/core/store'
import { expectWarnings } from '@sluice/harness/warnings'
import { FakeClock } from '@sluice/testing'
import { type Call, metered, OverBudget, type Piece, type Provider } from '../../recipes/llm-budgets.js'

/** The store, in which nothing of a reservation can be changed while it `isOut`. */
function outOf(store: MemoryStore): Store & { isOut: boolean } {
  const keyspace: Store['keyspace'] = (...limiter) => {
    const opened = store.keyspace(...limiter)
    const { reservations } = opened
    const change: Reservations['change'] = (asked) => {
      if (failing.isOut) throw new StoreError('STORE_TIMEOUT', 'out', { sent: true })
      return reservations!.change(asked)
    }
    return Object.assign(opened, {
      reservations: reservations && { reserve: reservations.reserve.bind(reservations), change },
    })
  }
  const failing = { local: true, forgets: true, keyspace, isOut: false, now: () => store.now(), close() {} }
  return failing
}

describe('the recipe for budgets of a language model', () => {
  let clock: FakeClock
  let store: MemoryStore
  let pieces: readonly Piece[]
  beforeEach(() => {
    expectWarnings(['STORE_FORGETS']) // a service has another store
    clock = new FakeClock()
    store = memoryStore({ clock: clock.now })
    pieces = [
      { text: 'an ', microDollars: 1000, tokens: 40 },
      { text: 'answer', microDollars: 3000, tokens: 100 },
    ]
  })

  const provider: Provider = async function* (_prompt, signal) {
    for (const piece of pieces) {
      signal.throwIfAborted()
      yield piece
    }
  }
  /** A provider of which nothing comes until the caller hangs up. */
  const silent: Provider = async function* (_prompt, signal) {
    signal.throwIfAborted()
    await new Promise((_, hungUp) => signal.addEventListener('abort', () => hungUp(signal.reason)))
    yield { text: '', microDollars: 0, tokens: 0 }
  }
  const callOf = (more: Partial<Call> = {}): Call => ({
    organisation: 'acme',
    team: 'search',
    user: 'ann',
    prompt: 'hello',
    mostDollars: 5_000_000,
    mostTokens: 4000,
    signal: new AbortController().signal,
    ...more,
  })

  /** What a budget has charged, and what of it is held. */
  async function spent(name: string, key: string) {
    const policies = [calendarWindow({ limit: 1_000_000, every: 'month' })]
    const budget = createLimiter({ name, policies, store, reservations: {} })
    const { used, held } = (await budget.peek(key)).policies[0]!
    return [used, held]
  }

  it('charges what was used to the organisation, the team and the user', async () => {
    expect(await metered(provider, store)(callOf())).toBe('an answer')
    expect(await spent('organisation', 'acme')).toEqual([3000, 0])
    expect(await spent('team', 'acme/search')).toEqual([3000, 0])
    expect(await spent('user', 'ann')).toEqual([3000, 0])
  })

  it('charges parts of a micro-dollar as a whole one', async () => {
    pieces = [{ text: 'answer', microDollars: 3000.5, tokens: 100 }]
    expect(await metered(provider, store)(callOf())).toBe('answer')
    expect(await spent('user', 'ann')).toEqual([3001, 0])
  })

  it('gives the permit back where the usage cannot be settled', async () => {
    pieces = [{ text: 'answer', microDollars: -1, tokens: 100 }]
    const ask = metered(provider, store)
    for (let i = 0; i < 5; i++)
      await expect(ask(callOf({ mostDollars: 1000 }))).rejects.toMatchObject({ code: 'INVALID_COST' })
  })

  it('hands the answer over where the store does not answer, and settles it once that does', async () => {
    jest.useFakeTimers()
    const failing = outOf(store)
    const ask = metered(async function* (...call) {
      yield* provider(...call)
      failing.isOut = true
    }, failing)
    expect(await ask(callOf())).toBe('an answer')
    expect(await spent('user', 'ann')).toEqual([5_000_000, 5_000_000])
    await jest.advanceTimersByTimeAsync(5000)
    failing.isOut = false
    await jest.advanceTimersByTimeAsync(1000)
    jest.useRealTimers()
    for (const [name, key] of [
      ['organisation', 'acme'],
      ['team', 'acme/search'],
      ['user', 'ann'],
    ] as const)
      expect(await spent(name, key)).toEqual([3000, 0])
  })

  it('charges nobody for what one budget refuses', async () => {
    const ask = metered(provider, store)
    const refused = ask(callOf({ mostDollars: 21_000_000 }))
    await expect(refused).rejects.toThrow(OverBudget)
    expect(await spent('organisation', 'acme')).toEqual([0, 0])
  })

  it('charges what was used when the caller hangs up', async () => {
    const hangUp = new AbortController()
    const ask = metered(async function* (prompt, signal) {
      for await (const piece of provider(prompt, signal)) {
        yield piece
        hangUp.abort()
      }
    }, store)
    await expect(ask(callOf({ signal: hangUp.signal }))).rejects.toThrow('aborted')
    expect(await spent('user', 'ann')).toEqual([1000, 0])
  })

  it('holds four at once, and lets the fifth wait for none', async () => {
    const hangUp = new AbortController()
    const ask = metered(silent, store)
    const four = Array.from({ length: 4 }, () => ask(callOf({ signal: hangUp.signal })))
    await expect(ask(callOf())).rejects.toThrow('concurrency')
    expect(await spent('user', 'ann')).toEqual([20_000_000, 20_000_000])
    hangUp.abort()
    expect(await Promise.allSettled(four)).toMatchObject(Array(4).fill({ status: 'rejected' }))
    expect(await spent('user', 'ann')).toEqual([0, 0])
  })

  it('leaves the money charged of a call whose process died once the provider was asked', async () => {
    expectWarnings(['STORE_FORGETS', 'RESERVATION_LATE'])
    const hangUp = new AbortController()
    const dead = metered(silent, store)(callOf({ signal: hangUp.signal }))
    await new Promise(setImmediate)
    clock.pass(600_000)
    expect(await spent('user', 'ann')).toEqual([5_000_000, 0])
    hangUp.abort()
    await expect(dead).rejects.toThrow('aborted')
  })
})
