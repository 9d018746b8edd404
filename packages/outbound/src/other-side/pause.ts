import type { OutboundReply } from '../request.js'
import { digitsNamed, httpDateIn, itemsOf, leastIn, numberIn, waitMsIn } from './values.js'

/**
 * Milliseconds for which a reply asks for a pause: by `Retry-After` if it is a refusal (429, 503, 529), otherwise by a quota that
 * is used up. 0 if it asks for none; undefined for a refusal that does not say how long. For `pauseOf` of a queue; `limitFetch`
 * reads replies the same way. The other side chooses the number: bound it.
 */
export function pauseMsOf(reply: OutboundReply): number | undefined {
  return statedMs(reply, REFUSALS.has(reply.status))
}

/**
 * Milliseconds for which a reply asks for a pause: 0 if it asks for none, undefined for a refusal that does not say how long.
 * `isRefusal` marks a refusal, whatever its status. In a refusal or a 403, `Retry-After` decides. Without it the pause lasts until
 * the reset of the quotas that are used up, the last of them; or of all quotas, if a 429 reports none as used up. The age of a
 * reply from a cache is subtracted, and the quotas of a success from a cache are ignored.
 */
export function statedMs(reply: OutboundReply, isRefusal: boolean): number | undefined {
  const { status } = reply
  const askedMs = isRefusal || status === 403 ? retryAfterMs(reply) : NaN
  if (askedMs > 0) return askedMs
  const quotas = quotasOf(reply)
  const usedUp = quotas.filter(({ remaining }) => remaining < 1)
  // A 429 although units are left: the call cost more than what remains.
  const binding = usedUp.length > 0 || status !== 429 ? usedUp : quotas
  const resetsMs = binding.map(({ resetMs }) => resetMs - ageMsOf(reply)).filter((ms) => ms > 0)
  if (resetsMs.length > 0) {
    const isOldSuccess = status < 400 && isFromCache(reply)
    if (!isOldSuccess) return Math.max(...resetsMs)
  }
  return isRefusal && Number.isNaN(askedMs) ? undefined : 0
}

/** Statuses of a refusal. Anthropic and others reply with 529 when they are overloaded. */
export const REFUSALS: ReadonlySet<number> = new Set([429, 503, 529])

/** Whether the other side forbids a retry, as OpenAI, Anthropic and Stripe do when one would fail again. */
export function forbidsRetry(reply: OutboundReply): boolean {
  return reply.header('x-should-retry') === 'false' || reply.header('stripe-should-retry') === 'false'
}

/** Whether a reply lay in a cache for a second or more: its quotas are then out of date (RFC 9111, 5.1). */
export function isFromCache(reply: OutboundReply): boolean {
  return ageMsOf(reply) > 0
}

/** Milliseconds since a reply was made, if it comes from a cache; otherwise 0. */
function ageMsOf(reply: OutboundReply): number {
  const age = reply.header('age')
  const seconds = age === undefined ? 0 : numberIn(age.split(',', 1)[0])
  return seconds >= 1 ? seconds * 1000 : 0
}

/**
 * Milliseconds that a refusal asks to wait, by the first of the headers in `RETRY_AFTER` that asks for a wait. If none does, 0 or
 * less where a header has an instant that is over, or NaN where all headers are absent or invalid.
 */
function retryAfterMs(reply: OutboundReply): number {
  let overMs = NaN
  for (const [name, unitMs] of RETRY_AFTER) {
    const ms = waitMsIn(reply.header(name), madeAt(reply), unitMs) - ageMsOf(reply)
    if (ms > 0) return ms
    if (!Number.isNaN(ms)) overMs = ms
  }
  return overMs
}

/** Headers that ask for a wait, of OpenAI, Azure, AWS and RFC 9110 (10.2.3), each with the milliseconds that 1 in it means. */
const RETRY_AFTER = [
  ['retry-after-ms', 1],
  ['x-ms-retry-after-ms', 1],
  ['x-amz-retry-after', 1],
  ['retry-after', 1000],
] as const

/**
 * The instant at which a reply was made, in milliseconds since 1970: by the sender's clock (header `Date`), or by ours without that
 * header. Dates in other headers are compared with it, so a difference between the clocks does no harm.
 */
function madeAt(reply: OutboundReply): number {
  const date = httpDateIn(reply.header('date'))
  return Number.isNaN(date) ? Date.now() - ageMsOf(reply) : date
}

/** A quota of the other side: what remains of it, NaN if unknown, and the milliseconds from when the reply was made to its reset. */
interface ReportedQuota {
  readonly remaining: number
  readonly resetMs: number
}

/**
 * Returns the quotas that a reply's headers report: how many calls or units remain, and when the quota is reset. Only headers in
 * `QUOTA_READERS` report quotas. A client that cannot list the names of a reply's headers is asked for each of these.
 */
function quotasOf(reply: OutboundReply): readonly ReportedQuota[] {
  const quotas: ReportedQuota[] = []
  for (const headerName of reply.names?.() ?? QUOTA_READERS.keys()) {
    const name = headerName.toLowerCase()
    const readQuotas = QUOTA_READERS.get(name)
    if (!readQuotas) continue
    const value = reply.header(name)
    if (value !== undefined) quotas.push(...readQuotas(value, reply))
  }
  return quotas
}

/**
 * Returns the quotas in a header `RateLimit` of draft-ietf-httpapi-ratelimit-headers. From draft 8 on it is a list of items
 * `"policy";r=50;t=30`, after draft 11 `"policy";a=50;w=30`; in draft 7 it is one quota `limit=100, remaining=50, reset=30`. An
 * item without both numbers, what remains and the seconds until the reset, is ignored.
 */
function structuredQuotas(value: string, reply: OutboundReply): readonly ReportedQuota[] {
  const items = itemsOf(value)
  const now = madeAt(reply)
  /** The quota in the parts of one item, such as `r=50` and `t=30`, by their names. */
  const quotaIn = (parts: readonly string[], remaining: string, reset: string): ReportedQuota => ({
    remaining: numberIn(digitsNamed(remaining, parts)),
    resetMs: waitMsIn(digitsNamed(reset, parts), now),
  })
  const quotas = items.flatMap((parts) => [quotaIn(parts, 'r', 't'), quotaIn(parts, 'a', 'w')])
  const partsOfDraft7 = items.map(([part = '']) => part)
  return [...quotas, quotaIn(partsOfDraft7, 'remaining', 'reset')].filter(
    ({ remaining, resetMs }) => remaining >= 0 && resetMs >= 0,
  )
}

/**
 * Returns the quota in `X-Shopify-Shop-Api-Call-Limit: 40/40`, which says how full a leaky bucket is; none if the text is not of
 * this form. A bucket of every plan drains in 20 s (40 at 2 a second, 80 at 4, 400 at 20). So a bucket of 40 has room for one more
 * call after a 40th of that, which is taken as its reset.
 */
function bucketQuotas(value: string): readonly ReportedQuota[] {
  const [, used, size] = (value.length <= LONGEST_BUCKET && BUCKET.exec(value)) || []
  if (!(Number(size) > 0)) return []
  return [{ remaining: Math.max(0, Number(size) - Number(used)), resetMs: BUCKET_DRAINS_MS / Number(size) }]
}

const BUCKET = /^\s*(\d{1,6})\/(\d{1,6})\s*$/
const LONGEST_BUCKET = 32
const BUCKET_DRAINS_MS = 20_000

/** The units that OpenAI, Azure and compatible providers count separately. */
const UNITS = [
  'requests',
  'tokens',
  'input-tokens',
  'output-tokens',
  'project-requests',
  'project-tokens',
  'tokens_usage_based',
]

/** Reads the quotas in the value of a header. */
type QuotaReader = (value: string, reply: OutboundReply) => readonly ReportedQuota[]

/**
 * Returns a reader of a quota that a reply reports in two headers: one has the units that remain (NaN without it), the other when they
 * are back. The reader is listed under the name of the second header, `reset`, as a reply without it says no wait.
 */
const pair = (remaining: string, reset: string): [string, QuotaReader] => [
  reset,
  (value, reply) => [
    { remaining: leastIn(reply.header(remaining)), resetMs: waitMsIn(value, madeAt(reply)) },
  ],
]

/** Readers of quotas, by the name of their header. */
const QUOTA_READERS: ReadonlyMap<string, QuotaReader> = new Map([
  ['ratelimit', structuredQuotas],
  ['x-shopify-shop-api-call-limit', bucketQuotas],
  pair('x-ratelimit-remaining', 'x-ratelimit-reset'), // GitHub and most others
  pair('x-ratelimit-remaining', 'x-ratelimit-reset-after'), // Discord
  pair('x-rate-limit-remaining', 'x-rate-limit-reset'), // Twitter, Okta
  pair('ratelimit-remaining', 'ratelimit-reset'), // drafts 0 to 6, GitLab
  ...UNITS.flatMap((unit) => [
    pair(`x-ratelimit-remaining-${unit}`, `x-ratelimit-reset-${unit}`),
    pair(`x-rate-limit-remaining-${unit}`, `x-rate-limit-reset-${unit}`),
    pair(`anthropic-ratelimit-${unit}-remaining`, `anthropic-ratelimit-${unit}-reset`),
  ]),
])
