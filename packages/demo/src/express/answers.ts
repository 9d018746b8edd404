import { Tally } from '../tally.js'
import type { Caller, Route } from './routes.js'

/** What a response said about the limit. */
export interface Answer {
  readonly verdict: 'allowed' | 'refused' | 'failed'
  /** From X-RateLimit-Remaining or RateLimit. */
  readonly remaining: number | undefined
  /** From Retry-After, in seconds. */
  readonly retryAfter: number | undefined
  /** Policies that refused, where the limiter has several. */
  readonly refusedBy: readonly string[]
}

/** What one caller of one route was answered. Requests that Ctrl-C cut off are left out. */
export class Answers {
  readonly tally = new Tally()
  latest: Answer | undefined
  /** Refused calls by the policies that refused them, where the limiter has several. */
  readonly refusedBy = new Map<string, number>()

  constructor(
    readonly route: Route,
    readonly caller: Caller,
  ) {}

  /** Instants are those of `performance.now()`. */
  add(answer: Answer, sentAt: number, answeredAt: number): void {
    this.latest = answer
    this.tally.add(answer.verdict, sentAt, answeredAt, this.route.cost?.units)
    const policies = answer.refusedBy.join(' and ')
    if (policies) this.refusedBy.set(policies, (this.refusedBy.get(policies) ?? 0) + 1)
  }
}
