import { PolicyError, type Semaphore } from '@sluice/core'
import {
  custom,
  type DeclarationOf,
  expectedButGot,
  func,
  nested,
  oneOf,
  type Option,
  readOptions,
  REFUSED,
  type Settings,
  text,
  whole,
} from '@sluice/core/internal'
import { CallQueue } from './call-queue.js'
import { OUTBOUND_EVENTS, type OutboundEvent } from './events.js'
import { PROVIDERS } from './other-side/providers.js'
import type { OutboundReply, OutboundRequest } from './request.js'
import { SETTLE, type SettleOptions } from './settle.js'
import type { RefusalKind } from './verdict.js'
import {
  checkSources,
  cost,
  isSearched,
  type LimiterOption,
  type OneOrSeveral,
  oneOrSeveral,
  priority,
  sourcesOf,
  WAITING,
  type WaitingOptions,
} from './waiting-options.js'

export interface OutboundOptions extends WaitingOptions {
  /**
   * Gives calls their turn. Its key is held when the other side asks for a pause. Of a list, a call takes the turns one after
   * the other, in the order given: the narrowest limit first, which is also the one that is held. Of
   * semaphores in the list it takes a permit each, before the last turn.
   * @default no limit on the rate; a semaphore or `adaptive` is then required
   */
  readonly limiter?: LimiterOption
  /**
   * Bounds how many calls are under way at once.
   * @default not bounded
   */
  readonly semaphore?: Semaphore
  /**
   * The key whose limit a call counts under: one for all calls, or a function of the request. A list has one for each limiter and semaphore of `limiter`.
   * @default the origin of the URL
   */
  readonly key?: OneOrSeveral<string | ((request: OutboundRequest) => string)>
  /**
   * Units that a call takes.
   * @default 1
   */
  readonly cost?: number | ((request: OutboundRequest) => number)
  /**
   * Of the calls that wait in this process, that with the highest number goes first.
   * @default 0
   */
  readonly priority?: number | ((request: OutboundRequest) => number)
  /**
   * Names the tenant of a request. Among those of one priority that wait in this process, tenants then take turns, by cost: one
   * with many requests does not hold up the others.
   * @default requests go first come, first served
   */
  readonly fair?: (request: OutboundRequest) => string
  /**
   * How often a request that was refused (429, 503, 529, or 403 with a pause) is sent again, 0 to 10. If one limited client
   * wraps another, the outermost retries.
   * @default 2; 5 where a limit is searched, as one call may meet several refusals that a search causes
   */
  readonly retries?: number
  /**
   * Whether a request may be sent again after a refusal. A body that can be read only once, such as a stream, is never sent again.
   * @default GET, HEAD, OPTIONS, TRACE, PUT, DELETE, and requests with an `Idempotency-Key`
   */
  readonly isRetryable?: (request: OutboundRequest) => boolean
  /**
   * Reads a provider's own headers. Returns for how many milliseconds a reply asks for a pause: 0 for none, undefined to
   * have the usual headers read. A status of 400 or more with a pause counts as a refusal.
   */
  readonly pauseOf?: (outcome: {
    readonly reply: OutboundReply
  }) => number | undefined | Promise<number | undefined>
  /**
   * Whether a reply refuses the call: `true` beside 429, 503 and 529, for example for a 502 of a provider that sends it when it
   * is overloaded; two such replies with no success between them pause the key, as those do. `'final'` for a refusal that no
   * wait cures: the call is not sent again, and the key not held. `'none'` for one that is no refusal at all. `false` and
   * undefined change nothing.
   */
  readonly isRefusal?: (outcome: { readonly reply: OutboundReply }) => RefusalKind | Promise<RefusalKind>
  /**
   * Reads what bodies of this provider say: RetryInfo of Google and why it sent a 403, THROTTLED and throttleStatus of Shopify's
   * GraphQL, the error codes of AWS and of OpenAI.
   * @default none is read
   */
  readonly provider?: 'google' | 'shopify' | 'aws' | 'openai'
  /**
   * Which bodies `isRefusal` and `pauseOf` may read, of those that are JSON of up to 64 KiB: `'all'` has the caller of a success
   * without a `Content-Length` wait for its end, a second at most.
   * @default those of errors (from 400 on), and of successes with a `Content-Length`
   */
  readonly readBody?: 'all'
  /**
   * Reserves the cost of each call at the limiters that were made with `reservations`, and settles it by what the call has used once
   * its response has ended, was given up or failed. The reservation is extended while the call is under way.
   * @default the cost stays charged
   */
  readonly settle?: SettleOptions
  /** Called with what happens to calls. */
  readonly onEvent?: (event: OutboundEvent) => void
}

const OUTBOUND = {
  ...WAITING,
  key: oneOrSeveral(perRequest(text('a text', /^/))),
  cost: perRequest(cost),
  priority: perRequest(priority),
  fair: func<NonNullable<OutboundOptions['fair']>>(),
  retries: whole(0, 10),
  retryBudget: { ...WAITING.retryBudget, otherwise: { ratio: 0.1, perSecond: 1 } },
  isRetryable: func<NonNullable<OutboundOptions['isRetryable']>>(),
  pauseOf: func<NonNullable<OutboundOptions['pauseOf']>>(),
  isRefusal: func<NonNullable<OutboundOptions['isRefusal']>>(),
  provider: oneOf(Object.keys(PROVIDERS) as (keyof typeof PROVIDERS)[]),
  readBody: custom("'all'", (value) => (value === 'all' ? value : REFUSED)),
  settle: nested(SETTLE),
  onEvent: func<NonNullable<OutboundOptions['onEvent']>>(),
} satisfies DeclarationOf<OutboundOptions>

/**
 * Returns an option that takes one value for all requests, or a function that returns a value for each. What the function returns
 * is checked with each call, not here.
 */
function perRequest<Setting>(
  option: Option<Setting>,
): Option<Setting | ((request: OutboundRequest) => Exclude<Setting, undefined>)> {
  return {
    ...option,
    accepts: `${option.accepts} or a function`,
    parse: (value, name) => (typeof value === 'function' ? (value as never) : option.parse(value, name)),
  }
}

/** The options of a client with their defaults, and the queue of its calls. */
export interface OutboundSettings extends Omit<Settings<typeof OUTBOUND>, 'retries'> {
  readonly isRetryable: (request: OutboundRequest) => boolean
  readonly retries: number
  /** Whether functions of the user judge requests and replies. */
  readonly hasHooks: boolean
  readonly queue: CallQueue
}

/**
 * Checks the options of a client, sets defaults and makes the queue of its calls, to which `onEvent` listens. `what` names the client
 * in messages of errors. By default a refused request is sent again twice, or five times where the client is `adaptive`: the search
 * for the provider's limit causes refusals, and one call may meet several.
 * @throws {PolicyError} INVALID_OPTION (also `settle` without a limiter that reserves), INVALID_DURATION.
 */
export function settingsOf(options: OutboundOptions, what: string): OutboundSettings {
  const settings = readOptions(OUTBOUND, options, { what })
  const { isRetryable = isIdempotent, retries = isSearched(settings) ? 5 : 2, onEvent } = settings
  checkSources(settings)
  if (settings.settle && !sourcesOf(settings).limiters.some(({ reserves }) => reserves)) {
    throw new PolicyError('INVALID_OPTION', 'settle needs a limiter that was made with reservations: {}')
  }
  const queue = new CallQueue(settings)
  if (onEvent) for (const type of OUTBOUND_EVENTS) queue.on(type, onEvent)
  const hasHooks = Boolean(settings.isRetryable ?? settings.isRefusal ?? settings.pauseOf)
  return { ...settings, isRetryable, retries, hasHooks, queue }
}

/**
 * Throws an error unless `isRight`: an argument of a client is checked when it is given, rather than with its first call. `what`
 * says which function takes what, `given` is the argument.
 * @throws {PolicyError} INVALID_OPTION.
 */
export function checkGiven(isRight: boolean, what: string, given: unknown): void {
  if (!isRight) throw expectedButGot(PolicyError, 'INVALID_OPTION', what, given)
}

const IDEMPOTENT = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

/** Whether it does no harm to send a request twice: by its method, or by an `Idempotency-Key`. */
function isIdempotent(request: OutboundRequest): boolean {
  return IDEMPOTENT.has(request.method) || request.header('idempotency-key') !== undefined
}
