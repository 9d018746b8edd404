// A process with one contender of a framework: a server whose limit is never reached, and one whose caller has used its limit
// up, as both happen in a service. Arguments: the framework and the contender.
import { GENEROUS } from '../../contender.js'
import { answering } from '../../processes/child.js'
import { frameworkNamed } from '../frameworks.js'
import { BARE, DENYING } from '../modes.js'
import { callerOf } from './exchange.js'

const [framework = '', name = ''] = process.argv.slice(2)

/** Milliseconds of CPU on each server before the first turn, which make the code hot. Then a burst says how fast it is. */
const WARM_UP_MS = 500
const BURST = 1000

const servers = start()

answering(async (/** @type {{ requests?: number, check?: boolean }} */ { requests, check }) => {
  const { allowed, denied } = await servers
  if (check) return { allowed: await answered(allowed, 200), denied: denied && (await answered(denied, 429)) }
  if (requests === undefined) {
    await warmUp(allowed, 200)
    if (denied) await warmUp(denied, 429)
    return 1000 * (await cpuOf(allowed, 200, BURST))
  }
  const allowedUs = await cpuOf(allowed, 200, requests)
  return { allowedUs, deniedUs: denied ? await cpuOf(denied, 429, requests) : NaN }
})

async function start() {
  const { contenders } = await frameworkNamed(framework)
  const open = contenders[name]
  if (!open) throw new Error(`${framework} has no ${name}`)
  const callerAt = async (/** @type {import('../../contender.js').Limit} */ limit) =>
    callerOf(await open(limit))
  const allowed = await callerAt(GENEROUS)
  if (name === BARE) return { allowed, denied: undefined }
  const denied = await callerAt(DENYING)
  const status = await denied.request()
  if (status !== 200) throw new Error(`${framework}, ${name} answers its first request with ${status}`)
  return { allowed, denied }
}

/** @param {ReturnType<typeof callerOf>} caller @param {number} status */
async function warmUp(caller, status) {
  for (let ms = 0; ms < WARM_UP_MS; ms += (BURST * (await cpuOf(caller, status, BURST))) / 1000);
}

/**
 * Microseconds of CPU a request, one after the other, garbage collection included.
 * @param {ReturnType<typeof callerOf>} caller
 * @param {number} status That every response must have.
 * @param {number} requests
 */
async function cpuOf({ request }, status, requests) {
  const start = process.cpuUsage()
  let right = 0
  for (let i = 0; i < requests; i++) if ((await request()) === status) right++
  const { user, system } = process.cpuUsage(start)
  if (right !== requests)
    throw new Error(`${framework}, ${name}: ${right} of ${requests} responses were ${status}`)
  return (user + system) / requests
}

/**
 * The names of the headers of an answer, its type and what it says, without its numbers.
 * @param {ReturnType<typeof callerOf>} caller
 * @param {number} expected
 */
async function answered({ exchange }, expected) {
  const { status, head, body } = await exchange()
  if (status !== expected)
    throw new Error(`${framework}, ${name} answers ${status}, where ${expected} is right`)
  const [, ...lines] = head.split('\r\n')
  const headers = lines.map((line) => line.replace(/:.*/, '').toLowerCase()).toSorted()
  const type = lines.find((line) => /^content-type:/i.test(line))?.replace(/^.*?: *|;.*/g, '')
  return [...headers, type, body].join('\n').replace(/\d+/g, '0')
}
