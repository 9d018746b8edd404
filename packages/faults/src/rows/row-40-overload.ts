import { createLimiter, gcra } from '@sluice/core'
import { randomFrom } from '@sluice/harness/figures'
import { limitFetch, type OutboundOptions } from '@sluice/outbound'
import { install } from '@sinonjs/fake-timers'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'

/** A provider that is overloaded gets hardly any calls, is soon known to be well again, and may fail a call now and then. */
export const row: Row = { number: 40, fault: 'overload of a provider', run: overload }

const [CALLERS, LATENCY_MS, BEGIN_MS, RATE] = [8, 40, 3000, 100]
/** Enough to make 1,000 calls a second, though some of them wait for another attempt. */
const MANY_CALLERS = 60
/** Beside what is under way when the outage begins. */
const mostSends = (seconds: number): number => 8 + seconds / 45
const LONGEST_MS = 60_000
const MOST_LOST = 0.02
const [LEAST_USED, MOST_REFUSED] = [0.85, 0.01]

/**
 * Lets clients call a provider that refuses for a while, in simulated time. Passes if few calls are refused meanwhile and
 * others follow soon afterwards, and a few stray refusals cost little of the rate. `share` is the part of the full load, 0 to
 * 1.
 */
async function overload(share: number): Promise<Outcome> {
  const outages = [503, 529].flatMap((status) =>
    [3, Math.max(900, 3600 * share)].map((s) => [status, s] as const),
  )
  const outcomes: Outcome[] = []
  for (const [status, seconds] of outages) outcomes.push(await inFakeTime(() => outage(status, seconds)))
  outcomes.push(await inFakeTime(() => outage(503, 3, { 'retry-after': '0' })))
  outcomes.push(await inFakeTime(() => strays(RATE, CALLERS, Math.max(60, 600 * share))))
  outcomes.push(await inFakeTime(() => strays(10 * RATE, MANY_CALLERS, Math.max(120, 300 * share))))
  return together([...outcomes, await inFakeTime(() => unknownRate(Math.max(120, 600 * share)))])
}

/**
 * Lets the provider answer with one status, and these headers, for so many seconds. Passes if few calls are sent meanwhile, and
 * the first after it comes soon.
 */
async function outage(
  status: number,
  seconds: number,
  headers: Record<string, string> = {},
): Promise<Outcome> {
  const endMs = BEGIN_MS + seconds * 1000
  const crowd = call(
    (atMs) => (atMs >= BEGIN_MS && atMs < endMs ? status : 200),
    underLimit(1000),
    CALLERS,
    headers,
  )
  await pass(BEGIN_MS)
  const most = crowd.underWay() + mostSends(seconds)
  await pass(seconds * 1000)
  const before = crowd.sent.length
  while (crowd.sent.length === before && performance.now() < endMs + 2 * LONGEST_MS) await pass(1000)
  const refused = crowd.sent.filter((sent) => sent.status !== 200)
  const backMs = (crowd.sent[before]?.atMs ?? Infinity) - endMs
  const gapMs = Math.max(
    ...refused.map(({ atMs }, i) => crowd.sent[before - refused.length + i + 1]!.atMs - atMs),
  )
  return {
    pass: refused.length <= most && backMs <= LONGEST_MS && gapMs - LATENCY_MS <= LONGEST_MS,
    figure:
      `${[status, ...Object.entries(headers).flat()].join(' ')} for ${seconds} s: ${refused.length} sends (bar ${Math.floor(most)}), ` +
      `tried again ${(backMs / 1000).toFixed(1)} s after its end and ${((gapMs - LATENCY_MS) / 1000).toFixed(1)} s after ` +
      `any refusal (bar ${LONGEST_MS / 1000})`,
  }
}

/** Lets a provider refuse one call in a hundred for no reason. Passes if little of the rate is lost by that. */
async function strays(rate: number, callers: number, seconds: number): Promise<Outcome> {
  const random = randomFrom(40)
  const crowd = call(() => (random() < 0.01 ? 503 : 200), underLimit(rate), callers)
  await pass(seconds * 1000)
  const lost = 1 - crowd.sent.length / (rate * seconds)
  return {
    pass: lost <= MOST_LOST,
    figure: `1 % stray 503s at ${rate} a second: ${(100 * lost).toFixed(1)} % of the rate lost (bar ${100 * MOST_LOST} %)`,
  }
}

/**
 * Lets clients find a rate that none of them knows: calls beyond it are refused without a stated wait. Passes if most of it
 * is used and few calls are refused.
 */
async function unknownRate(seconds: number): Promise<Outcome> {
  const served: number[] = []
  const crowd = call(
    (atMs) => {
      while (served[0]! <= atMs - 1000) served.shift()
      return served.length < RATE && served.push(atMs) > 0 ? 200 : 429
    },
    { adaptive: { min: 1, initial: 10, max: 1000 } },
  )
  await pass(seconds * 1000)
  const refused = crowd.sent.filter(({ status }) => status === 429).length
  const used = (crowd.sent.length - refused) / (RATE * seconds)
  return {
    pass: used >= LEAST_USED && refused <= MOST_REFUSED * crowd.sent.length,
    figure:
      `an unknown ${RATE} a second: ${(100 * used).toFixed(1)} % used (bar ${100 * LEAST_USED}), ` +
      `${((100 * refused) / crowd.sent.length).toFixed(2)} % refused (bar ${100 * MOST_REFUSED})`,
  }
}

/** Callers that make one call after the other, under a limit that leaves it to the provider to refuse. */
function call(
  statusAt: (atMs: number) => number,
  limits: OutboundOptions = underLimit(1000),
  callers = CALLERS,
  headers: Record<string, string> = {},
) {
  const sent: { readonly atMs: number; readonly status: number }[] = []
  let underWay = 0
  const limited = limitFetch(async () => {
    const atMs = performance.now()
    const status = statusAt(atMs)
    sent.push({ atMs, status })
    underWay++
    await new Promise((resolve) => setTimeout(resolve, LATENCY_MS))
    underWay--
    return new Response('', { status, headers })
  }, limits)
  const caller = async (): Promise<never> => {
    for (;;) {
      const response = await limited('https://provider.example').catch(() => undefined)
      if (response?.status !== 200) await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }
  for (let i = 0; i < callers; i++) void caller()
  return { sent, underWay: () => underWay }
}

/** The options of an outbound client under a rate of calls a second. */
function underLimit(rate: number): OutboundOptions {
  return { limiter: createLimiter({ policies: [gcra({ limit: rate, window: '1s', burst: 1 })] }) }
}

const immediately = setImmediate

/** Moves the simulated time on by so many milliseconds, timer by timer. */
async function pass(ms: number): Promise<void> {
  let isOver = false
  setTimeout(() => (isOver = true), ms)
  while (!isOver) {
    await new Promise((resolve) => immediately(resolve))
    clock!.next()
  }
}

let clock: ReturnType<typeof install> | undefined

/** Measures in simulated time, with random numbers that are the same each time. */
async function inFakeTime(measure: () => Promise<Outcome>): Promise<Outcome> {
  const { random } = Math
  Math.random = randomFrom(4)
  clock = install({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  })
  try {
    return await measure()
  } finally {
    clock.uninstall()
    Math.random = random
  }
}
