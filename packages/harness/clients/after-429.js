// How long clients wait after a 429: npm run verify -- clients-429. Each client of clients.js calls a server on loopback that refuses
// until the wait that it states is over. All cells run side by side, at most 70 s each. Prints where the tables of docs/clients.md
// differ from what was seen, with exit 1; --write writes the tables. The clients come from npm, into this folder alone, and from Debian.
import { gcra, createLimiter } from '@sluice/core'
import { limitNodeRequest } from '@sluice/http'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { listening, versionOfPackage } from '../../../scripts/verify/started.js'
import { writeOrCompare } from '../../../scripts/verify/written-tables.js'
import { children, CLIENTS } from './clients.js'
import { PROTOCOLS } from './protocols.js'

const PAGE = fileURLToPath(new URL('../../../docs/clients.md', import.meta.url))
const MOST_SECONDS = 70
const SHOWN_SECONDS = 65
const STILL = 'still waits'
/** The five that are used most, as clients.js lists them first. */
const MOST_USED = Object.keys(CLIENTS).slice(0, 5)

const inSeconds = (seconds) => Math.ceil(Date.now() / 1000) + seconds
const retryAfter = (seconds) => () => ({ 'retry-after': String(seconds) })
/** What is answered, by the title of its column: the wait, what states it, and how it is sent. */
// prettier-ignore
const ANSWERS = {
  '`Retry-After: 1`': [1, retryAfter(1)],
  '`Retry-After: 30`': [30, retryAfter(30)],
  '`Retry-After: 61`': [61, retryAfter(61)],
  '`Retry-After: 3600`': [3600, retryAfter(3600)],
  '`Retry-After` as a date, in 5 s': [5, () => ({ 'retry-after': new Date(inSeconds(5) * 1000).toUTCString() })],
  '`X-RateLimit-Reset` alone, in 5 s': [5, () => ({ 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(inSeconds(5)) })],
  '`RateLimit` alone, `t=5`': [5, () => ({ 'ratelimit-policy': '"default";q=1;w=5', ratelimit: '"default";r=0;t=5' })],
  '`retry-after-ms: 5000` alone': [5, () => ({ 'retry-after-ms': '5000' })],
  'POST, `Retry-After: 5`': [5, retryAfter(5), 'POST'],
  '503, `Retry-After: 5`': [5, retryAfter(5), 'GET', 503],
  'none of these headers': [5, () => ({})],
}
/** Options of Sluice whose answers are compared, and what is added by hand. */
// prettier-ignore
const SETS = {
  '`headers: \'x-ratelimit\'`, the default': [{}],
  '`headers: \'ietf\'`': [{ headers: 'ietf' }],
  '`headers: [\'x-ratelimit\', \'ietf\']`': [{ headers: ['x-ratelimit', 'ietf'] }],
  '`headers: \'draft-6\'`': [{ headers: 'draft-6' }],
  '`resetAs: \'delta\'`': [{ resetAs: 'delta' }],
  '`headers: false`: `Retry-After` alone': [{ headers: false }],
  'the default, with `X-RateLimit-Reset` when `Retry-After` ends': [{ onDenied: (_, res, { retryAfterMs }) => void res.setHeader('X-RateLimit-Reset', inSeconds(Math.ceil(retryAfterMs / 1000))).end('{}') }],
  'the default and `retry-after-ms`': [{}, (seconds) => ({ 'retry-after-ms': String(seconds * 1000) })],
  'the default without `Retry-After`': [{ headerNames: { 'Retry-After': false } }],
}
// prettier-ignore
const ASKED = [['GET', 5], ['GET', 30], ['POST', 5]]
/** As Slack and Notion word it; the others read the status alone. */
const REFUSAL =
  '{"ok":false,"error":"ratelimited","object":"error","status":429,"code":"rate_limited","message":"slow down"}'

const cells = []
const { origin } = await listening(createServer(receive))

console.log(`all clients side by side, each at most ${MOST_SECONDS} s`)
const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))
const versions = byName(Object.keys(CLIENTS), (name) => versionOf(CLIENTS[name][0]))
const clients = Object.keys(CLIENTS).filter((name) => versions[name])
const lacks = Object.keys(CLIENTS).filter((name) => !versions[name])
if (lacks.length > 0) console.log(`not tried, as Debian's packages are not installed: ${lacks.join(', ')}`)
process.env.AWS_MAX_ATTEMPTS = '3'
process.removeAllListeners('warning')
process.on('unhandledRejection', () => {})
const running = []
// What a first call loads would hold up the calls that are measured.
for (const name of clients) await CLIENTS[name][2](origin, 'GET').catch(() => {})
const delays = monitorEventLoopDelay()
delays.enable()
const seen = {}
const scored = byName(Object.keys(SETS), () => [])
for (const name of clients) {
  seen[name] = {}
  for (const title of Object.keys(ANSWERS)) seen[name][title] = await start(name, plain(...ANSWERS[title]))
  for (const [set, list] of Object.entries(scored))
    for (const [method, seconds] of ASKED)
      list.push(await start(name, ofSluice(method, seconds, ...SETS[set])))
}
const [protocols] = await Promise.all([PROTOCOLS(), ...running])

// Waits are told apart by a second, so what a busy machine holds up for as long is no client's doing.
if (delays.max > 1e9)
  throw new Error(`held up for ${(delays.max / 1e9).toFixed(1)} s: run this on an idle machine`)
writeOrCompare(PAGE, { clients: clientsTable(), score: scoreTable(), protocols })
for (const child of children) child.kill()
// Clients that still wait have timers and sockets of their own.
process.exit()

function receive(req, res) {
  const cell = cells[Number(/cell-(\d+)/.exec(req.url)?.[1])]
  if (!cell) return ok(res)
  if (cell.at.push(performance.now()) === 1) setTimeout(() => cell.over(), MOST_SECONDS * 1000).unref()
  req.resume()
  void cell.answer(req, res)
}

/** An answer that is no limiter's: refused until the wait is over. */
function plain(seconds, headers, method = 'GET', status = 429) {
  let end
  let stated
  const answer = (_, res) => {
    end ??= performance.now() + seconds * 1000
    stated ??= headers()
    if (performance.now() >= end - 20) return ok(res)
    res.writeHead(status, { ...stated, 'content-type': 'application/json' }).end(REFUSAL)
  }
  return { method, seconds, answer }
}

/**
 * The answer of a limit of Sluice, which is used up when the first request comes: a unit is free after the wait, and all four after
 * four times that, so that what reads X-RateLimit-Reset shows.
 */
function ofSluice(method, seconds, options, added = () => ({})) {
  const limiter = createLimiter({ name: 'calls', policies: [gcra({ limit: 4, window: 4000 * seconds })] })
  const limit = limitNodeRequest({ limiter, key: () => 'caller', ...options })
  let taken
  const answer = async (req, res) => {
    taken ??= limiter.consume('caller', { cost: 4 })
    await taken
    for (const [name, value] of Object.entries(added(seconds))) res.setHeader(name, value)
    if (await limit(req, res)) ok(res)
  }
  return { method, seconds, answer }
}

function ok(res) {
  res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
}

/** Starts a call of a client, as a cell that is filled once all have ended. */
async function start(name, { method, seconds, answer }) {
  const cell = { at: [], answer, seconds, caller: STILL }
  const url = `${origin}/cell-${cells.push(cell) - 1}`
  const call = CLIENTS[name][2]
  const ended = (async () => call(url, method))().then(String, (error) => `throws ${statusOf(error)}`)
  const over = new Promise((resolve) => (cell.over = resolve))
  running.push(Promise.race([ended, over]).then((caller) => void (cell.caller = caller ?? STILL)))
  // Were all to begin at once, they would hold each other up, and waits would show that: a process takes some 30 ms to start.
  await later(15)
  return cell
}

function statusOf(error) {
  const places = [error, error.response, error.raw]
  const codes = places.flatMap((place) => [place?.status, place?.statusCode])
  const found = [...codes, error.$metadata?.httpStatusCode].find((each) => typeof each === 'number')
  return found ?? (/\b(429|503)\b/.exec(error.message)?.[1] || error.code || error.name)
}

/** Of what npm or Debian has; empty where it is not installed. */
function versionOf(from) {
  return from === '' ? `Node ${process.versions.node}` : (dependencies[from] ?? versionOfPackage(from))
}

function byName(names, make) {
  return Object.fromEntries(names.map((name) => [name, make(name)]))
}

/** Seconds from the first request to the second; undefined if there was none. */
function firstWait({ at }) {
  return at.length > 1 ? (at[1] - at[0]) / 1000 : undefined
}

/** Whether a client waits as told: not less, and at most twice as long. */
function isRight(cell) {
  const wait = firstWait(cell)
  return wait !== undefined && wait >= cell.seconds - 0.05 && wait <= 2 * cell.seconds + 0.2
}

function shown(cell) {
  const wait = firstWait(cell)
  const caller = cell.caller === STILL ? '' : `, ${cell.caller}`
  if (wait === undefined) return cell.caller === STILL ? `1, > ${SHOWN_SECONDS} s` : `1${caller}`
  const seconds = wait < 0.2 ? '0' : wait < 2.95 ? wait.toFixed(1) : String(Math.round(wait))
  return `${cell.at.length > 50 ? '> 50' : cell.at.length}, ${seconds} s${caller}`
}

function clientsTable() {
  const titles = Object.keys(ANSWERS)
  const rows = clients.map((name) => {
    const made = [name, versions[name], CLIENTS[name][1]]
    return [...made, ...titles.map((title) => shown(seen[name][title]))]
  })
  return [['client', 'version', 'made with', ...titles], ...rows]
}

function scoreTable() {
  const perClient = ASKED.length
  const rows = Object.entries(scored).map(([set, list]) => {
    const right = list.map((cell) => (isRight(cell) ? 1 : 0))
    const sum = (part) => `${part.reduce((a, b) => a + b)} of ${part.length}`
    const used = MOST_USED.map((_, i) => sum(right.slice(i * perClient, (i + 1) * perClient)))
    return [set, sum(right), ...used]
  })
  return [['answered with', 'calls that wait rightly', ...MOST_USED], ...rows]
}
