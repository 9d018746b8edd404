import { forbidsRetry, pauseMsOf } from '../src/other-side/pause.js'

/** Answers as providers document them or as they were seen, and what each asks for, in milliseconds. */
const NOW = Date.UTC(2026, 0, 1, 12)
const inSeconds = (offset: number) => String(NOW / 1000 + offset)
const date = new Date(NOW).toUTCString()

const answers: readonly (readonly [
  provider: string,
  status: number,
  headers: Record<string, string>,
  asksMs: number | undefined,
])[] = [
  ['OpenAI, requests used up', 200, openai({ requests: ['0', '6m0s'], tokens: ['149984', '20ms'] }), 360_000],
  ['OpenAI, tokens used up', 200, openai({ requests: ['4999', '12ms'], tokens: ['0', '20ms'] }), 20],
  ['OpenAI, something left', 200, openai({ requests: ['4999', '12ms'], tokens: ['149984', '6ms'] }), 0],
  [
    'OpenAI, a call too large for what is left',
    429,
    openai({ requests: ['9', '20ms'], tokens: ['5', '6m0s'] }),
    360_000,
  ],
  ['OpenAI, retry-after-ms beside Retry-After', 429, { 'retry-after': '1', 'retry-after-ms': '218' }, 218],
  ['Azure OpenAI, a second spelling', 429, { 'x-rate-limit-reset-tokens': '55' }, 55_000],
  [
    'Azure OpenAI, nothing known',
    429,
    { 'x-ratelimit-remaining-tokens': '-1', 'x-ratelimit-reset-tokens': '0' },
    undefined,
  ],
  ['Azure Cosmos DB', 429, { 'x-ms-retry-after-ms': '14' }, 14],
  ['Groq', 429, { 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '2m59.56s' }, 179_560],
  ['Anthropic, input tokens used up', 200, anthropic('input-tokens', '0', '2026-01-01T12:00:42Z'), 42_000],
  ['Anthropic, something left', 200, anthropic('output-tokens', '7000', '2026-01-01T12:00:42Z'), 0],
  ['Anthropic, a reset with an offset', 429, anthropic('requests', '0', '2026-01-01T13:00:01.5+01:00'), 1500],
  [
    'Anthropic, limited',
    429,
    { ...anthropic('requests', '0', '2026-01-01T12:01:00Z'), 'retry-after': '12' },
    12_000,
  ],
  ['Anthropic, overloaded', 529, { 'retry-after': '3', 'x-should-retry': 'true' }, 3000],
  [
    'GitHub, primary limit',
    403,
    { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(60) },
    60_000,
  ],
  [
    'GitHub, secondary limit',
    403,
    { 'x-ratelimit-remaining': '14', 'x-ratelimit-reset': inSeconds(11), 'retry-after': '60' },
    60_000,
  ],
  ['GitHub, no permission', 403, { 'x-ratelimit-remaining': '4999', 'x-ratelimit-reset': inSeconds(60) }, 0],
  [
    'GitLab',
    429,
    { 'ratelimit-remaining': '0', 'ratelimit-reset': inSeconds(30), 'retry-after': '30' },
    30_000,
  ],
  ['Twitter', 200, { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': inSeconds(900) }, 900_000],
  ['Okta', 429, { 'x-rate-limit-remaining': '0', 'x-rate-limit-reset': inSeconds(20) }, 20_000],
  [
    'Discord',
    200,
    {
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': `${inSeconds(0)}.250`,
      'x-ratelimit-reset-after': '0.25',
    },
    250,
  ],
  ['Shopify, a full bucket of 40', 200, { 'x-shopify-shop-api-call-limit': '40/40' }, 500],
  ['Shopify Plus, a full bucket of 400', 200, { 'x-shopify-shop-api-call-limit': '400/400' }, 50],
  ['Shopify, room in the bucket', 200, { 'x-shopify-shop-api-call-limit': '39/40' }, 0],
  ['Shopify, refused', 429, { 'x-shopify-shop-api-call-limit': '40/40', 'retry-after': '2.0' }, 2000],
  ['Stripe, which names no time', 429, { 'stripe-rate-limited-reason': 'global-rate' }, undefined],
  [
    'drafts 0 to 6',
    200,
    { 'ratelimit-limit': '10', 'ratelimit-remaining': '0', 'ratelimit-reset': '50' },
    50_000,
  ],
  ['draft 7', 200, { ratelimit: 'limit=100, remaining=0, reset=50' }, 50_000],
  ['drafts 8 to 11', 200, { ratelimit: '"100-in-15min"; r=0; t=50; pk=:dXNlcg==:' }, 50_000],
]

function openai(units: Record<string, readonly [remaining: string, reset: string]>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(units).flatMap(([unit, [remaining, reset]]) => [
      [`x-ratelimit-remaining-${unit}`, remaining],
      [`x-ratelimit-reset-${unit}`, reset],
    ]),
  )
}

function anthropic(unit: string, remaining: string, reset: string): Record<string, string> {
  return {
    [`anthropic-ratelimit-${unit}-remaining`]: remaining,
    [`anthropic-ratelimit-${unit}-reset`]: reset,
  }
}

const replyOf = (status: number, headers: Record<string, string>) => ({
  status,
  header: (name: string) => headers[name],
})

it.each(answers)('%s: %d', (_, status, headers, asksMs) => {
  const asked = pauseMsOf(replyOf(status, { date, ...headers }))
  expect(asked).toEqual(asksMs === undefined ? undefined : expect.closeTo(asksMs, 6))
})

it('recognises that the other side forbids a retry', () => {
  const headers = [
    { 'x-should-retry': 'false' },
    { 'stripe-should-retry': 'false' },
    { 'x-should-retry': 'true' },
  ]
  expect(headers.map((header) => forbidsRetry(replyOf(429, header)))).toEqual([true, true, false])
})
