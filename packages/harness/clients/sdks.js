// Counts how often SDKs send a call to a provider that always refuses, with their defaults and as docs/outbound-clients.md
// sets them, and prints a line for each: npm run verify -- sdks. Exit 1 when a number is not that of the page, or when a call
// is sent twice that may not be. The SDKs come from npm, into this folder alone.
import { startOtherParty } from '@sluice/harness/servers'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = dirname(fileURLToPath(import.meta.url))
const page = readFileSync(join(HERE, '../../../docs/outbound-clients.md'), 'utf8')
const pieces = new Map(
  [...page.matchAll(/^```js (\S+)\n([\s\S]*?)^```$/gm)].map(([, name = '', code = '']) => [name, code]),
)

/**
 * The name of each SDK on the page, and the parts to remove from its example so that it retries as it comes.
 * @type {Record<string, readonly [title: string, ...defaults: RegExp[]]>}
 */
const SDKS = {
  langchain: ['LangChain', /maxRetries: 0,/],
  slack: ['Slack', /retryConfig: .*/, /rejectRateLimitedCalls: .*/],
  ai: ['ai', /, maxRetries: 0/],
  notion: ['Notion', /retry: false,/],
  google: ['Google Gen AI', /retryOptions: .*/],
  mistral: ['Mistral', /retryConfig: .*/],
  cohere: ['Cohere', /maxRetries: 0,/],
  twilio: ['Twilio', /autoRetry: false/],
  ofetch: ['ofetch', /retry: 0/],
}

/** `fetch` and axios reach the provider under whatever name an SDK knows; long delays between attempts pass faster. */
const REROUTED = `
import http from 'node:http'
import https from 'node:https'
const { PROVIDER } = process.env
const real = globalThis.fetch
globalThis.fetch = async (input, init) => {
  const { pathname, search } = new URL(input instanceof Request ? input.url : String(input))
  const at = PROVIDER + pathname + search
  if (!(input instanceof Request)) return real(at, init)
  // One that was sent before has no body left, and comes with another.
  const { method, headers } = input
  return real(...(input.bodyUsed ? [at, { method, headers, ...init }] : [new Request(at, input), init]))
}
https.request = (options, ...rest) => {
  const { hostname, port } = new URL(PROVIDER)
  return http.request({ ...options, protocol: 'http:', hostname, host: hostname, port, agent: undefined }, ...rest)
}
const later = globalThis.setTimeout
globalThis.setTimeout = (call, ms, ...args) => later(call, ms > 500 ? ms / 100 : ms, ...args)
process.on('uncaughtException', () => process.exit(0))
`

/** As Notion and Google word it; the others read the status alone. */
const REFUSAL = JSON.stringify({
  object: 'error',
  status: 429,
  code: 'rate_limited',
  message: 'slow down',
  error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'slow down' },
})

let passed = true
const asked = process.argv.slice(2)
for (const [name, [title, ...defaults]] of Object.entries(SDKS)) {
  if (asked.length > 0 && !asked.includes(name)) continue
  const example = (pieces.get(name) ?? '')
    .replace(/maxWait: '\w+'/, "maxWait: '1d'")
    .replace('120_000', '6_000_000')
  const asItComes = defaults.reduce((code, part) => code.replace(part, ''), example)
  const asSet = await sends(example)
  const byDefault = await sends(asItComes)
  const isRead = / isRetryable/.test(example) === false
  const once = isRead ? undefined : await sends(example.replace(/, isRetryable: \(\) => true/, ''))
  const row = page.split('\n').find((line) => line.startsWith(`| ${title} |`)) ?? ''
  const [, , shown, shownSet] = row.split('|').map((cell) => cell.trim())
  const isRight =
    byDefault === Number.parseInt(shown ?? '') &&
    asSet === Number(shownSet) &&
    asSet <= 3 &&
    (once ?? 1) === 1
  if (!isRight) passed = false
  console.log(
    `${isRight ? 'pass' : 'FAIL'}  ${title.padEnd(14)} ${byDefault} sends with its defaults (the page: ${shown}), ` +
      `${asSet} as set (${shownSet})${once === undefined ? '' : `, ${once} where it may not be repeated`}`,
  )
}
process.exitCode = passed ? 0 : 1

/**
 * How many requests the code sends to a provider that always refuses.
 * @param {string} code
 */
async function sends(code) {
  const other = await startOtherParty((_, res) =>
    res
      .writeHead(429, { 'retry-after': '1', 'retry-after-ms': '100', 'content-type': 'application/json' })
      .end(REFUSAL),
  )
  const env = { ...process.env, PROVIDER: other.origin, OPENAI_API_KEY: 'test' }
  const child = spawn(process.execPath, ['--input-type=module'], {
    cwd: HERE,
    env,
    stdio: ['pipe', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (text) => (errors += text))
  child.stdin.end(`${pieces.get('begin')}\n${REROUTED}\n${code}`)
  const timer = setTimeout(() => child.kill(), 60_000)
  await once(child, 'close')
  clearTimeout(timer)
  other.close()
  if (other.arrived.length === 0) console.error(errors.slice(0, 1000))
  return other.arrived.length
}
