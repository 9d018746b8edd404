import '@sluice/calendar' // for versions of Node without Temporal
import {
  calendarWindow,
  createLimiter,
  createSemaphore,
  type Decision,
  memoryStore,
  reserveAll,
  slidingWindow,
  type Store,
  StoreError,
} from '@sluice/core'

/** A call of a model: whom it is for, and the most that it can cost in micro-dollars and in tokens. */
export interface Call {
  readonly organisation: string
  readonly team: string
  readonly user: string
  readonly prompt: string
  readonly mostDollars: number
  readonly mostTokens: number
  readonly signal: AbortSignal
}

/** A piece of a streamed answer, with the usage so far. Parts of a micro-dollar are charged as a whole one. */
export interface Piece {
  readonly text: string
  readonly microDollars: number
  readonly tokens: number
}

export type Provider = (prompt: string, signal: AbortSignal) => AsyncIterable<Piece>

/** Longer than any answer takes. What a dead process holds comes back after it. */
const TTL = '10m'

/**
 * Calls a model under budgets of an organisation, a team and a user, a calendar month each; under tokens and calls a minute of the
 * user; and four at once. All admit a call, or none is charged. The most that it can cost is reserved before, and what it has cost
 * is settled after it, also if it fails or the caller hangs up; an answer that was paid for waits for no store that is out. A process that dies before the request has left gives all back, and
 * one that dies later leaves the money charged, as the provider bills it.
 * @throws {OverBudget}
 */
export function metered(provider: Provider, store: Store = memoryStore()) {
  const reserving = { store, reservations: { max: 1000 } }
  const monthly = (name: string, dollars: number) =>
    createLimiter({
      name,
      policies: [calendarWindow({ limit: dollars * 1_000_000, every: 'month' })],
      ...reserving,
    })
  const [organisations, teams, users] = [
    monthly('organisation', 1000),
    monthly('team', 200),
    monthly('user', 20),
  ]
  const tokens = createLimiter({
    name: 'tokens',
    policies: [slidingWindow({ limit: 100_000, window: '1m' })],
    ...reserving,
  })
  const calls = createLimiter({
    name: 'calls',
    policies: [slidingWindow({ limit: 30, window: '1m' })],
    ...reserving,
  })
  const atOnce = createSemaphore({ name: 'at-once', limit: 4, store })

  return async (call: Call): Promise<string> => {
    const { organisation, team, user, mostDollars, mostTokens } = call
    const money = { cost: mostDollars, ttl: TTL } as const
    const whole = await reserveAll([
      { semaphore: atOnce, key: user },
      { limiter: organisations, key: organisation, ...money },
      { limiter: teams, key: `${organisation}/${team}`, ...money },
      { limiter: users, key: user, ...money },
      { limiter: tokens, key: user, cost: mostTokens, ttl: TTL },
      { limiter: calls, key: user, cost: 1, ttl: TTL, atEnd: 1 },
    ])
    if (!whole.allowed) throw new OverBudget(whole.denied!)
    let [dollars, used, count] = [0, 0, 0]
    try {
      // From here on the provider may bill.
      const budgets = whole.reservations.slice(0, 3)
      await Promise.all(budgets.map((budget) => budget.extend(TTL, { atEnd: mostDollars })))
      count = 1
      let answer = ''
      for await (const piece of provider(call.prompt, call.signal)) {
        answer += piece.text
        dollars = piece.microDollars
        used = piece.tokens
      }
      return answer
    } finally {
      const cost = Math.ceil(dollars)
      const settle = () => whole.settle([cost, cost, cost, used, count])
      try {
        await settle().catch((error) => settleLater(settle, error))
      } finally {
        await whole.release()
      }
    }
  }
}

/** Settles once more each second where the store has not answered, for a minute: however often, it acts once. */
function settleLater(settle: () => Promise<unknown>, error: unknown, left = 60): void {
  if (!(error instanceof StoreError)) throw error
  if (left === 0) return // what stays charged at the end does
  const again = (): void => void settle().catch((later) => settleLater(settle, later, left - 1))
  setTimeout(again, 1000).unref()
}

/** A budget is spent, or too many calls are under way. */
export class OverBudget extends Error {
  constructor(readonly decision: Decision) {
    super(`${decision.limiter}: ${decision.reason}, retry in ${decision.retryAfterMs} ms`)
  }
}
