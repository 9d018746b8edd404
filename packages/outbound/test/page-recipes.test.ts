import { createLimiter, gcra } from '@sluice/core'
import { transformSync } from 'esbuild'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import { limitFetch, type OutboundEvent, type OutboundOptions } from '../src/index.js'

/** Runs the recipes of docs/outbound.md for providers whose headers are not read. */
const page = readFileSync(join(__dirname, '../../../docs/outbound.md'), 'utf8')
const [, recipes] = /^### Headers of other providers\n[^]*?^```ts\n([^]*?)^```$/m.exec(page)!
const [, scopes] = /^A provider that says which [^]*?^```ts\n([^]*?)^```$/m.exec(page)!

const NOW = Date.UTC(2026, 0, 1, 12)
beforeEach(() => void jest.useFakeTimers({ now: NOW }))
afterEach(() => void jest.useRealTimers())

/** What a recipe ends with, over `send`, where all its clients have further `options`. */
function run(recipe: string, send: typeof fetch, options: OutboundOptions) {
  const limit = (inner: typeof fetch, own: OutboundOptions) => limitFetch(inner, { ...own, ...options })
  const { code } = transformSync(recipe.replaceAll(/^import .*$/gm, ''), { loader: 'ts' })
  return runInNewContext(code, { createLimiter, gcra, limitFetch: limit, fetch: send, Date }) as Record<
    string,
    typeof fetch
  >
}

/** The pauses, in milliseconds, of a client of the page after this reply. */
async function held(name: string, status: number, headers: Record<string, string>, body = '') {
  const pauses: number[] = []
  const onEvent = (event: OutboundEvent) => void (event.type === 'held' && pauses.push(event.holdMs))
  const send = async () => new Response(body, { status, headers })
  const clients = run(`${recipes}\n;({ linear, zendesk, dockerHub, cerebras })`, send, {
    onEvent,
    retries: 0,
  })
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

it.each([
  [
    'global',
    { 'x-ratelimit-global': 'true' },
    [
      ['application', 'https://a.example'],
      ['route', '/a'],
    ],
    7000,
  ],
  ['user', { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset-after': '7' }, [['route', '/a']], 0],
])('discord: a 429 of scope %s holds its own limit alone', async (scope, named, expected, otherRouteAt) => {
  const held: unknown[] = []
  const onEvent = (event: OutboundEvent) => {
    if (event.type === 'held') held.push([event.limiter, event.key])
  }
  const sent: { path: string; at: number }[] = []
  const send = async (input: unknown) => {
    sent.push({ path: new URL(input as string).pathname, at: Date.now() - NOW })
    const headers = { 'x-ratelimit-scope': scope, 'retry-after': '7', ...named }
    return sent.length > 1 ? new Response('') : new Response('', { status: 429, headers })
  }
  const { discord } = run(`${scopes}\n;({ discord })`, send, { onEvent })
  const first = discord!('https://a.example/a')
  await jest.advanceTimersByTimeAsync(100)
  const second = discord!('https://a.example/b')
  await jest.advanceTimersByTimeAsync(10_000)
  expect([(await first).status, (await second).status, held]).toEqual([200, 200, expected])
  const timeOf = (path: string) => sent.findLast((each) => each.path === path)!.at
  expect(timeOf('/a')).toBeGreaterThanOrEqual(7000)
  expect(timeOf('/b')).toBeGreaterThanOrEqual(otherRouteAt)
  expect(timeOf('/b')).toBeLessThan(otherRouteAt + 1000)
})

it('docs/testing.md: a fetch that is looked up at each call is the mock that was installed later', async () => {
  const limiter = createLimiter({ policies: [gcra({ limit: 50, window: '1s' })] })
  const kept = limitFetch(fetch, { limiter })
  const lookedUp = limitFetch((...request) => fetch(...request), { limiter })
  const mock = jest.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response('mock'))
  expect(await (await lookedUp('https://a.example/')).text()).toBe('mock')
  await expect(kept('data:,real').then((response) => response.text())).resolves.toBe('real')
  expect(mock).toHaveBeenCalledTimes(1)
  mock.mockRestore()
})
