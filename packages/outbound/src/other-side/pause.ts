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
 * Milliseconds for which a reply asks for a pause; 0 if it asks for none, undefined for a refusal that does not say how long.
 * `isRefusal` marks a refusal, whatever its status. In a refusal or a 403, `Retry-After` comes first. Otherwise the quota that is
 * used up and resets last decides; if a 429 reports none as used up, the quota that resets last. The age of a reply from a cache
 * is subtracted, and the quotas of a success from a cache are ignored.
 */
export function statedMs(reply: OutboundReply, isRefusal: boolean): number | undefined {
  const { status } = reply
  const asked = isRefusal || status === 403 ? retryAfterMs(reply) : NaN
  if (asked > 0) return asked
  const quotas = quotasOf(reply)
  const usedUp = quotas.filter(({ remaining }) => remaining < 1)
  // A 429 although units are left: the call cost more than those.
  const binding = usedUp.length > 0 || status !== 429 ? usedUp : quotas
  const resets = binding.map(({ resetMs }) => resetMs - ageMsOf(reply)).filter((ms) => ms > 0)
  if (resets.length > 0 && !(status < 400 && isFromCache(reply))) return Math.max(...resets)
  return isRefusal && Number.isNaN(asked) ? undefined : 0
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
 * Milliseconds that a refusal asks to wait, by the headers of Azure, OpenAI and AWS in milliseconds or by `Retry-After` (RFC 9110,
 * 10.2.3). NaN if all are absent or invalid, 0 or less for an instant that has passed.
 */
function retryAfterMs(reply: OutboundReply): number {
  let askedMs = NaN
  for (const [name, unitMs] of RETRY_AFTER) {
    const ms = waitMsIn(reply.header(name), birthOf(reply), unitMs) - ageMsOf(reply)
    if (ms > 0) return ms
    if (!Number.isNaN(ms)) askedMs = ms
  }
  return askedMs
}

/** Headers that ask for a wait, each with the milliseconds that 1 in it means. */
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
function birthOf(reply: OutboundReply): number {
  const theirs = httpDateIn(reply.header('date'))
  return Number.isNaN(theirs) ? Date.now() - ageMsOf(reply) : theirs
}

/** A quota of the other side: what remains, NaN if unknown, and the milliseconds from the reply's birth until its reset. */
interface ReportedQuota {
  readonly remaining: number
  readonly resetMs: number
}

/** All quotas that a reply reports, each in headers of its own. */
function quotasOf(reply: OutboundReply): readonly ReportedQuota[] {
  const quotas: ReportedQuota[] = []
  for (const given of reply.names?.() ?? QUOTAS.keys()) {
    const name = given.toLowerCase()
    const read = QUOTAS.get(name)
    const value = read && reply.header(name)
    if (value !== undefined) quotas.push(...read!(value, reply))
  }
  return quotas
}

/**
 * `RateLimit` of draft-ietf-httpapi-ratelimit-headers: from draft 8 on items `"policy";r=50;t=30`, after draft 11
 * `"policy";a=50;w=30`, in draft 7 the one dictionary `limit=100, remaining=50, reset=30`. Items that lack one of the two are
 * ignored.
 */
function structuredQuotas(value: string, reply: OutboundReply): readonly ReportedQuota[] {
  const items = itemsOf(value)
  const birth = birthOf(reply)
  /** The quota in the parts of one item, such as `r=50` and `t=30`, by their names. */
  const quotaIn = (parts: readonly string[], remaining: string, reset: string): ReportedQuota => ({
    remaining: numberIn(digitsNamed(remaining, parts)),
    resetMs: waitMsIn(digitsNamed(reset, parts), birth),
  })
  const quotas = items.flatMap((parts) => [quotaIn(parts, 'r', 't'), quotaIn(parts, 'a', 'w')])
  const dictionary = items.map(([member = '']) => member)
  return [...quotas, quotaIn(dictionary, 'remaining', 'reset')].filter(
    ({ remaining, resetMs }) => remaining >= 0 && resetMs >= 0,
  )
}

/**
 * The quota in `X-Shopify-Shop-Api-Call-Limit: 40/40`, which says how full a leaky bucket is. Buckets of
 * every plan drain in 20 s (40 at 2 a second, 80 at 4, 400 at 20). So a bucket of 40 has room for one more call after a 40th of
 * that, which is taken as its reset.
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

/** The reader of a quota in two headers: what remains (NaN without it), and the reset, under whose name the reader is found. */
const pair = (remaining: string, reset: string): [string, QuotaReader] => [
  reset,
  (value, reply) => [
    { remaining: leastIn(reply.header(remaining)), resetMs: waitMsIn(value, birthOf(reply)) },
  ],
]

/** Readers of quotas, by the name of their header. */
const QUOTAS: ReadonlyMap<string, QuotaReader> = new Map([
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
