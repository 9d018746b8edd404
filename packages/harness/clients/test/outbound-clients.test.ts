import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'

/**
 * Runs the code of docs/outbound-clients.md, each piece in a process of its own with the package as it is built, against
 * a provider that refuses once, or always.
 */
const page = readFileSync('docs/outbound-clients.md', 'utf8')
const pieces = new Map(
  [...page.matchAll(/^```js (\S+)\n([\s\S]*?)^```$/gm)].map(([, name, code]) => [name!, code!]),
)

/** Where the clients are installed. */
const CLIENTS = join(__dirname, '..')

/** `fetch` reaches the provider under whatever name an SDK knows; the other clients are given its address. */
const REROUTED = `
const { PROVIDER } = process.env
const real = globalThis.fetch
globalThis.fetch = async (input, init) => {
  const asked = input instanceof Request ? input.url : String(input)
  if (asked.startsWith(PROVIDER)) return real(input, init)
  const { pathname, search } = new URL(asked)
  const at = PROVIDER + pathname + search
  const response = await real(input instanceof Request ? new Request(at, input) : at, init)
  return Object.defineProperty(response, 'url', { value: asked })
}
const report = (...values) => console.log(JSON.stringify(values))
const described = (error) =>
  error && { name: error.constructor.name, code: error.code, reason: error.reason, detail: described(error.detail), cause: described(error.cause) }
process.on('uncaughtException', (error) => {
  console.log(JSON.stringify(described(error)))
  process.exit(0)
})
`

/** Holds the key of every client. */
const HELD = `
const origins = ['openai', 'anthropic', 'stripe'].map((host) => 'https://api.' + host + '.com')
const keys = [...origins, 'github:core', 'https://www.googleapis.com', PROVIDER, 'sqs']
for (const key of keys) await limiter.hold(key, '1m')
`

interface Failure {
  readonly name: string
  readonly code?: string
  readonly detail?: Failure
  readonly cause?: Failure
}

let provider: OtherParty | undefined
afterEach(() => provider?.close())

type Answer = Parameters<typeof startOtherParty>[0]
const refuse: Answer = (_, res) => res.writeHead(429, { 'retry-after-ms': '100' }).end('{}')
const serve: Answer = (_, res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{}')
const refuseFirst: Answer = (n, res, req) => (n === 1 ? refuse : serve)(n, res, req)

/** How often the example sent its request, and how it failed, if it did. */
async function run(code: string, answer: Answer) {
  const other = (provider = await startOtherParty(answer))
  const child = spawn(process.execPath, ['--input-type=module'], {
    cwd: CLIENTS,
    env: {
      ...process.env,
      PROVIDER: other.origin,
      OPENAI_API_KEY: 'test',
      ANTHROPIC_API_KEY: 'test',
      STRIPE_KEY: 'sk_test_1',
      AWS_ENDPOINT_URL: other.origin,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
    },
  })
  let out = ''
  let errors = ''
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (errors += text))
  child.stdin.end(
    `${pieces.get('begin')}\n${REROUTED}\n${code.replaceAll('https://api.example.com', other.origin)}`,
  )
  const [exit] = (await once(child, 'close')) as [number]
  if (exit !== 0) throw new Error(errors)
  return { sent: other.arrived.length, failure: out === '' ? undefined : (JSON.parse(out) as Failure) }
}

/** The parts to remove from each example so that both retry, as with their defaults. */
const asTheyCome: Record<string, readonly [code: RegExp, instead: string][]> = {
  openai: [[/maxRetries: 0,/, '']],
  anthropic: [[/maxRetries: 0,/, '']],
  stripe: [[/maxNetworkRetries: 0,/, '']],
  octokit: [
    [
      /import \{ Octokit.*/,
      "import { Octokit as Core } from '@octokit/core'\nimport { retry } from '@octokit/plugin-retry'\nconst Octokit = Core.plugin(retry)",
    ],
  ],
  googleapis: [[/retry: false,/, 'retry: true,']],
  aws: [
    [/maxAttempts: 1/, ''],
    [/retry: \(error.*/, ''],
  ],
  got: [
    [/retry: \(error.*/, ''],
    [/\.extend\(\{ retry: \{ limit: 0 \} \}\)/, ''],
  ],
  ky: [[/retry: 0,/, '']],
  'axios-retry': [[/retryCondition:[\s\S]*?,\n\}\)/, '})']],
  undici: [[/\{ statusCodes.*?\}/, '']],
}
const clients = Object.keys(asTheyCome)
/** Run by `npm run verify -- sdks`. */
const ELSEWHERE = ['langchain', 'slack', 'ai', 'notion', 'google', 'mistral', 'cohere', 'twilio', 'ofetch']

/** The cells of the row of a client. */
function rowOf(name: string): readonly string[] {
  const isIts = (line: string) => line.startsWith('|') && line.includes(name.replace('aws', 'AWS'))
  return page
    .split('\n')
    .find(isIts)!
    .split('|')
    .map((cell) => cell.trim())
}

jest.setTimeout(120_000)

it('finds the examples', () => {
  expect([...pieces.keys()].toSorted()).toEqual(['begin', 'refused', ...clients, ...ELSEWHERE].toSorted())
})

it.each(clients)('%s retries a refused call after the pause', async (name) => {
  const { sent, failure } = await run(pieces.get(name)!, refuseFirst)
  expect([sent, failure]).toEqual([2, undefined])
  expect(provider!.arrived[1]!.at - provider!.arrived[0]!.at).toBeGreaterThanOrEqual(99)
})

it.each(clients)('%s sends as many attempts at a lasting 429 as its row says', async (name) => {
  const [, , asItComes, asSet] = rowOf(name)
  expect((await run(pieces.get(name)!, refuse)).sent).toBe(Number(asSet))
  provider?.close()
  const code = asTheyCome[name]!.reduce(
    (text, [part, instead]) => text.replace(part, instead),
    pieces.get(name)!,
  )
  expect(code).not.toBe(pieces.get(name))
  expect((await run(code, refuse)).sent).toBe(Number.parseInt(asItComes!))
})

it.each(clients)('%s fails as its row says if there is no turn, and sends nothing', async (name) => {
  const code = pieces.get(name)!.replace(/maxWait: '\w+'/, 'maxWait: 0')
  const { sent, failure } = await run(`${HELD}\n${code}`, serve)
  const [error, where] = rowOf(name)[5]!
    .split(', ')
    .map((part) => part.replaceAll('`', ''))
  expect([sent, failure?.name]).toEqual([0, error])
  const refusal = where === undefined ? failure : failure![where as 'cause' | 'detail']
  expect(refusal).toMatchObject({ name: 'RateLimitExceededError', reason: 'held' })
})

it('a used-up search of GitHub holds no other resource', async () => {
  const calls = `await octokit.request('GET /search/issues', { q: 'a' })
await octokit.request('GET /user')
await octokit.request('GET /search/issues', { q: 'a' })`
  const code = pieces.get('octokit')!.replace("maxWait: '10m'", "maxWait: '1s'")
  const { sent, failure } = await run(`${code}\n${calls}`, (n, res, req) => {
    if (req.url?.startsWith('/search')) res.setHeader('x-ratelimit-remaining', '0')
    res.setHeader('x-ratelimit-reset', Math.ceil(Date.now() / 1000) + 60)
    serve(n, res, req)
  })
  const refusal = { name: 'RateLimitExceededError', reason: 'held' }
  expect([sent, failure]).toMatchObject([3, { cause: refusal }])
})

it('the last example finds RateLimitExceededError in the error of an SDK', async () => {
  const { sent, failure } = await run(pieces.get('refused')!.replace('console.log', 'report'), serve)
  expect([sent, failure]).toEqual([0, ['held', expect.any(Number)]])
})
