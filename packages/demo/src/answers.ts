import { Tally } from './tally.js'
import type { Caller, Route } from './routes.js'

/** The limit's headers in a response. */
export interface Answer {
  readonly verdict: 'allowed' | 'denied' | 'failed'
  /** From X-RateLimit-Remaining or RateLimit. */
  readonly remaining: number | undefined
  /** From Retry-After, in seconds. */
  readonly retryAfter: number | undefined
  /** Policies that denied the call, where the limiter has several. */
  readonly deniedBy: readonly string[]
}

/** The answers to one caller of one route. Requests that Ctrl-C cut off are left out. */
export class Answers {
  readonly tally = new Tally()
  latest: Answer | undefined
  /** Denied calls by the policies that denied them, where the limiter has several. */
  readonly deniedBy = new Map<string, number>()

  constructor(
    readonly route: Route,
    readonly caller: Caller,
  ) {}

  /** Adds an answer to the counts. The instants at which the request was sent and answered are those of `performance.now()`. */
  add(answer: Answer, sentAt: number, answeredAt: number): void {
    this.latest = answer
    this.tally.add(answer.verdict, sentAt, answeredAt, this.route.cost?.units)
    const policies = answer.deniedBy.join(' and ')
    if (policies) this.deniedBy.set(policies, (this.deniedBy.get(policies) ?? 0) + 1)
  }
}
