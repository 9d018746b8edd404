// The table of what was measured, and whether the project's bars are met.
import { median, ratios } from '@sluice/harness/figures'
import { markdownOf } from '../figures/table.js'
import { counterNames } from './contenders.js'

/**
 * @typedef {object} Figure
 * @property {string} name
 * @property {number} bytes Of all that one caller has.
 * @property {number} roundTrips
 * @property {number[]} us A decision, in each round.
 */

/** Lines with an asterisk have an injected clock and so make no TIME call. @param {readonly Figure[]} figures */
export function printTable(figures) {
  const columns = ['', 'CPU, us', 'to flexible', 'to our gcra', 'bytes a key', 'round trips']
  const ratioTo = ratiosOf(figures)
  const rows = figures.map(({ name, bytes, roundTrips, us }) => [
    name,
    median(us).toFixed(2),
    ratioTo(name, 'rate-limiter-flexible').toFixed(2),
    ratioTo(name, 'gcra').toFixed(2),
    bytes.toLocaleString('en'),
    roundTrips.toFixed(1),
  ])
  console.log(markdownOf({ title: '', columns, rows }))
}

/**
 * Prints each bar with what was seen. Returns whether all are met.
 * @param {readonly Figure[]} figures
 */
export function printBars(figures) {
  const ratioTo = ratiosOf(figures)
  const named = (/** @type {string} */ name) => figures.find((figure) => figure.name === name)
  /** @type {readonly (readonly [what: string, seen: number, most: number])[]} */
  const bars = [
    [
      'CPU of a full log of 100,000 to one of 100',
      ratioTo('sliding log, 100,000, full *', 'sliding log, 100, full *'),
      1.5,
    ],
    ['CPU of 60 buckets to gcra', ratioTo('sliding window, 60 buckets', 'gcra'), 2],
    ['bytes an entry of a full log of 1,000', (named('sliding log, 1,000, full *')?.bytes ?? NaN) / 1000, 9],
    ['round trips of three policies', named('three policies')?.roundTrips ?? NaN, 1],
  ]
  for (const [what, seen, most] of bars) verdict(what, seen, most)
  // Harder than any traffic: a new bucket with every call.
  verdict(
    'goal: CPU of 60 buckets to gcra, a bucket passing',
    ratioTo('60 buckets, one passes a call *', 'gcra *'),
    2,
  )
  // The script is the same: what differs is the noise of the machine.
  verdict(
    'goal: CPU of a fixed window with nearing to one without',
    ratioTo('fixed window, nearing', 'fixed window'),
    1.02,
  )
  const toOthers = (/** @type {string} */ name) => ratioTo(name, 'rate-limiter-flexible')
  const time = toOthers('gcra') - toOthers('gcra *')
  for (const [name, most] of GOALS) {
    const seen = toOthers(name) + (name.endsWith('*') ? time : 0)
    verdict(`goal: CPU of ${name} to rate-limiter-flexible, alone`, seen, most)
  }
  return bars.every(([, seen, most]) => seen <= most)
}

/** The most that a call which travels alone may cost; the cost of TIME is added where the clock is injected. */
const GOALS = /** @type {const} */ ([
  ...counterNames.map((name) => /** @type {const} */ ([name, 1.5])),
  ['sliding window, 60 buckets', 2.2],
  ['sliding log, 100, full *', 2.2],
])

/**
 * @param {string} what
 * @param {number} seen
 * @param {number} most
 */
function verdict(what, seen, most) {
  console.log(`${seen <= most ? 'pass' : 'FAIL'}  ${what}: ${seen.toFixed(2)}, at most ${most}`)
}

/**
 * The median of the ratios that the rounds gave, so that a round's noise meets both.
 * @param {readonly Figure[]} figures
 */
function ratiosOf(figures) {
  const byName = new Map(figures.map(({ name, us }) => [name, us]))
  return (/** @type {string} */ name, /** @type {string} */ base) =>
    median(ratios(byName.get(name) ?? [], byName.get(base) ?? []))
}
