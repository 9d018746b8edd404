import type { Caller, Route } from './scenario.js'

/** What a response said about the limit. */
export interface Answer {
  readonly verdict: 'allowed' | 'refused' | 'unexpected'
  /** From X-RateLimit-Remaining or RateLimit. */
  readonly remaining: number | undefined
  /** From Retry-After, in seconds. */
  readonly retryAfter: number | undefined
  /** Policies that refused, where the limiter has several. */
  readonly refusedBy: readonly string[]
}

/** How many units were allowed and refused. */
export interface Count {
  allowed: number
  refused: number
}

/** What one caller of one route was answered, in units: calls, or what each call costs. */
export class Tally {
  /** Requests that were answered. Those cut off by Ctrl-C are left out. */
  sent = 0
  readonly total: Count = { allowed: 0, refused: 0 }
  /** Answers that are neither a success nor a proper refusal. */
  unexpected = 0
  latest: Answer | undefined
  /** Refused calls by the policies that refused them, where the limiter has several. */
  readonly refusedBy = new Map<string, number>()
  #recent: { readonly at: number; readonly verdict: keyof Count }[] = []
  #firstSentAt: number | undefined
  #lastAnsweredAt = 0

  constructor(
    readonly route: Route,
    readonly caller: Caller,
  ) {}

  /** Instants are those of `performance.now()`. */
  add(answer: Answer, sentAt: number, answeredAt: number): void {
    this.latest = answer
    this.#firstSentAt ??= sentAt
    this.#lastAnsweredAt = answeredAt
    this.sent += this.#units
    if (answer.verdict === 'unexpected') {
      this.unexpected++
      return
    }
    this.total[answer.verdict] += this.#units
    const policies = answer.refusedBy.join(' and ')
    if (policies) this.refusedBy.set(policies, (this.refusedBy.get(policies) ?? 0) + 1)
    this.#recent.push({ at: answeredAt, verdict: answer.verdict })
  }

  lastSecond(now: number): Count {
    this.#recent = this.#recent.filter(({ at }) => at > now - 1000)
    const count = { allowed: 0, refused: 0 }
    for (const { verdict } of this.#recent) count[verdict] += this.#units
    return count
  }

  /** From the first request to the last answer: whatever was allowed, was allowed in between. */
  get spanMs(): number {
    return this.#firstSentAt === undefined ? 0 : this.#lastAnsweredAt - this.#firstSentAt
  }

  get #units(): number {
    return this.route.cost?.units ?? 1
  }
}

export function sum(counts: readonly Count[]): Count {
  return {
    allowed: counts.reduce((total, { allowed }) => total + allowed, 0),
    refused: counts.reduce((total, { refused }) => total + refused, 0),
  }
}
