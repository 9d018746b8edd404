import type { OutboundOptions } from '../src/index.js'

/*
 * The forms in which providers state a limit, as docs/outbound-clients.md lists them.
 */

export const NOW = Date.UTC(2026, 0, 1, 12)

export interface Form {
  readonly name: string
  readonly by: string
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** JSON. */
  readonly body?: unknown
  readonly options?: Partial<OutboundOptions>
  /** Milliseconds that the key is held by the first reply that holds it, of two; 'final': none, and the refusal is final. */
  readonly means: number | 'nothing' | 'final'
}

const inSeconds = (seconds: number) => String(NOW / 1000 + seconds)
const dated = { date: new Date(NOW).toUTCString() }
const http = (seconds: number) => new Date(NOW + seconds * 1000).toUTCString()
const retryAfter = (value: string, by: string, means: Form['means'] = 4000, status = 429): Form => ({
  name: `\`Retry-After: ${value.replaceAll(String(NOW / 1000 + 4), '1767268804')}\``,
  by,
  status,
  headers: { ...dated, 'retry-after': value },
  means,
})
const usedUp = (name: string, by: string, headers: Readonly<Record<string, string>>): Form => ({
  name: `\`${name}\``,
  by,
  status: 200,
  headers: { ...dated, ...headers },
  means: 4000,
})
const reset = (value: string, by: string) =>
  usedUp(`X-RateLimit-Reset: ${value}`, by, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': value })
const cached = (form: Form, name: string, means: Form['means']): Form => ({
  ...form,
  headers: { ...form.headers, age: '50' },
  name,
  means,
})
const UNSTATED_MS = 1000
const messageHas =
  (text: string): NonNullable<OutboundOptions['isRefusal']> =>
  async ({ reply }) =>
    JSON.stringify(await reply.json!())?.includes(text)
const retryInfo = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '4s' }
const throttleStatus = { maximumAvailable: 1000, currentlyAvailable: 300, restoreRate: 50 }

export const FORMS: readonly Form[] = [
  retryAfter('4', 'most'),
  retryAfter(http(4), 'RFC 9110'),
  retryAfter(inSeconds(4), 'gateways that send an instant'),
  retryAfter('4, 4', 'two gateways'),
  retryAfter('0', 'gateways; counts as unstated the second time', UNSTATED_MS),
  ...['retry-after-ms', 'x-ms-retry-after-ms', 'x-amz-retry-after'].map((name, i): Form => ({
    name: `\`${name}: 4000\``,
    by: ['OpenAI, Azure', 'Azure', 'AWS'][i]!,
    status: 429,
    headers: { [name]: '4000' },
    means: 4000,
  })),
  usedUp('RateLimit: "p";r=0;t=4', 'IETF drafts 8 to 11', { ratelimit: '"p";r=0;t=4' }),
  usedUp('RateLimit: "p";a=0;w=4', 'the draft to come', { ratelimit: '"p";a=0;w=4' }),
  usedUp('RateLimit: limit=9, remaining=0, reset=4', 'IETF draft 7', {
    ratelimit: 'limit=9, remaining=0, reset=4',
  }),
  usedUp('RateLimit-Reset: 4', 'IETF drafts 0 to 6, GitLab', {
    'ratelimit-remaining': '0',
    'ratelimit-reset': '4',
  }),
  reset('4', 'most'),
  reset(inSeconds(4), 'GitHub'),
  reset(String(NOW + 4000), 'gateways that count milliseconds'),
  reset('4s', 'Groq, OpenAI'),
  reset('4000ms', 'Groq, OpenAI'),
  reset(new Date(NOW + 4000).toISOString(), 'Anthropic, in headers of its own'),
  reset(http(4), 'few'),
  usedUp('X-RateLimit-Reset-After: 4', 'Discord', {
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset-after': '4',
  }),
  usedUp('X-Rate-Limit-Reset: ' + inSeconds(4), 'Twitter, Okta', {
    'x-rate-limit-remaining': '0',
    'x-rate-limit-reset': inSeconds(4),
  }),
  usedUp('x-ratelimit-reset-tokens: 4s', 'OpenAI, Azure, Groq', {
    'x-ratelimit-remaining-tokens': '0',
    'x-ratelimit-reset-tokens': '4s',
  }),
  usedUp('anthropic-ratelimit-tokens-reset: 2026-01-01T12:00:04Z', 'Anthropic', {
    'anthropic-ratelimit-tokens-remaining': '0',
    'anthropic-ratelimit-tokens-reset': '2026-01-01T12:00:04Z',
  }),
  cached(reset('60', 'caches'), '`Age: 50` beside `X-RateLimit-Reset: 60`, in a 200', 'nothing'),
  cached(retryAfter('54', 'caches'), '`Age: 50` beside `Retry-After: 54`', 4000),
  {
    name: "RetryInfo in a 429, `provider: 'google'`",
    by: 'Google',
    status: 429,
    body: { error: { code: 429, details: [retryInfo] } },
    options: { provider: 'google' },
    means: 4000,
  },
  {
    name: "`userRateLimitExceeded` in a 403, `provider: 'google'`",
    by: 'Google Drive, Calendar, Gmail',
    status: 403,
    body: { error: { code: 403, errors: [{ domain: 'usageLimits', reason: 'userRateLimitExceeded' }] } },
    options: { provider: 'google' },
    means: UNSTATED_MS,
  },
  {
    name: "`THROTTLED` in a 200, `provider: 'shopify'`",
    by: "Shopify's GraphQL",
    status: 200,
    body: {
      errors: [{ message: 'Throttled', extensions: { code: 'THROTTLED' } }],
      extensions: { cost: { requestedQueryCost: 500, throttleStatus } },
    },
    options: { provider: 'shopify' },
    means: 4000,
  },
  {
    name: "`ThrottlingException` in a 400, `provider: 'aws'`",
    by: 'AWS',
    status: 400,
    body: { __type: 'com.amazon.coral.availability#ThrottlingException' },
    options: { provider: 'aws' },
    means: UNSTATED_MS,
  },
  {
    name: "`insufficient_quota` in a 429, `provider: 'openai'`",
    by: 'OpenAI',
    status: 429,
    headers: { 'retry-after': '4' },
    body: { error: { code: 'insufficient_quota' } },
    options: { provider: 'openai' },
    means: 'final',
  },
  {
    name: 'the secondary limit in a 403, by `isRefusal`',
    by: 'GitHub',
    status: 403,
    body: { message: 'You have exceeded a secondary rate limit.' },
    options: { isRefusal: messageHas('secondary rate limit') },
    means: UNSTATED_MS,
  },
  {
    name: '`RATELIMITED` in a 400, by `isRefusal`',
    by: 'Linear',
    status: 400,
    body: { errors: [{ extensions: { code: 'RATELIMITED' } }] },
    options: { isRefusal: messageHas('RATELIMITED') },
    means: UNSTATED_MS,
  },
]
