import { createLimiter, gcra } from '@sluice/core'
import { transformSync } from 'esbuild'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { limitFetch, type OutboundEvent, type OutboundOptions } from '../src/index.js'

/** Runs the recipes of docs/outbound.md for providers whose headers are not read. */
const page = readFileSync(join(__dirname, '../../../docs/outbound.md'), 'utf8')
const [, recipes] = /^### Headers of other providers\n[^]*?^```ts\n([^]*?)^```$/m.exec(page)!

const NOW = Date.UTC(2026, 0, 1, 12)
beforeEach(() => void jest.useFakeTimers({ now: NOW }))
afterEach(() => void jest.useRealTimers())

/** The pauses, in milliseconds, of a client of the page after this reply. */
async function held(name: string, status: number, headers: Record<string, string>, body = '') {
  const pauses: number[] = []
  const onEvent = (event: OutboundEvent) => void (event.type === 'held' && pauses.push(event.holdMs))
  const limit = (send: typeof fetch, options: OutboundOptions) =>
    limitFetch(send, { ...options, onEvent, retries: 0 })
  const code = `${recipes!.replaceAll(/^import .*$/gm, '')}\n;({ linear, zendesk, dockerHub, cerebras })`
  const { code: plain } = transformSync(code, { loader: 'ts' })
  const send = async () => new Response(body, { status, headers })
  const context = { createLimiter, gcra, limitFetch: limit, fetch: send, Date }
  const clients = runInNewContext(plain, context) as Record<string, typeof fetch>
  for (let call = 0; call < 2 && pauses.length === 0; call++) await clients[name]!('https://a.example/')
  return pauses
}

const json = { 'content-type': 'application/json' }
const inMs = (ms: number) => String(NOW + ms)

it.each<[string, string, number, Record<string, string>, string, number | undefined]>([
  [
    'linear',
    'requests used up',
    200,
    { 'x-ratelimit-requests-remaining': '0', 'x-ratelimit-requests-reset': inMs(4000) },
    '',
    4000,
  ],
  [
    'linear',
    'complexity used up',
    400,
    { ...json, 'x-ratelimit-complexity-remaining': '0', 'x-ratelimit-complexity-reset': inMs(9000) },
    '{"errors":[{"extensions":{"code":"RATELIMITED"}}]}',
    9000,
  ],
  [
    'linear',
    'another error',
    400,
    { ...json, 'x-ratelimit-requests-remaining': '7', 'x-ratelimit-requests-reset': inMs(4000) },
    '{"errors":[{}]}',
    undefined,
  ],
  [
    'zendesk',
    'used up',
    200,
    { 'zendesk-ratelimit-tickets-index': 'total=100; remaining=0; resets=41' },
    '',
    41_000,
  ],
  [
    'zendesk',
    'some left',
    200,
    { 'zendesk-ratelimit-tickets-index': 'total=100; remaining=9; resets=41' },
    '',
    undefined,
  ],
  ['zendesk', 'refused', 429, { 'retry-after': '7' }, '', 7000],
  [
    'dockerHub',
    'used up',
    200,
    { 'ratelimit-limit': '100;w=21600', 'ratelimit-remaining': '0;w=21600' },
    '',
    216_000,
  ],
  [
    'dockerHub',
    'some left',
    200,
    { 'ratelimit-limit': '100;w=21600', 'ratelimit-remaining': '76;w=21600' },
    '',
    undefined,
  ],
  [
    'cerebras',
    'tokens used up',
    200,
    {
      'x-ratelimit-remaining-tokens-minute': '0',
      'x-ratelimit-reset-tokens-minute': '11.38',
      'x-ratelimit-remaining-requests-day': '9',
    },
    '',
    11_380,
  ],
  [
    'cerebras',
    'some left',
    200,
    { 'x-ratelimit-remaining-tokens-minute': '6', 'x-ratelimit-reset-tokens-minute': '11.38' },
    '',
    undefined,
  ],
])('%s: %s', async (name, _, status, headers, body, holdMs) => {
  expect(await held(name, status, headers, body)).toEqual(holdMs === undefined ? [] : [holdMs])
})
