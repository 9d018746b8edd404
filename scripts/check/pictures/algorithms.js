// The same calls under each algorithm, as the library decides them: a box a call, a column a second.
import { readFileSync } from 'node:fs'
import { createLimiter, memoryStore } from '@sluice/core'
import { algorithms as core } from '@sluice/core/store'
import { FakeClock } from '@sluice/testing'
import {
  box,
  label,
  legend,
  line,
  MARGIN,
  picture,
  text,
  WIDTH,
} from '../../../packages/bench/src/figures/drawing.js'

/** @import { Policy } from '@sluice/core' */

const LIMIT = 10
const WINDOW_S = 10
const RULE = { limit: LIMIT, window: `${WINDOW_S}s` }

/**
 * Captions, in the order of the rows, and the options that each row shows. An algorithm that has none comes behind them, with its
 * defaults.
 * @type {Readonly<Record<string, { note?: string, inWords?: string, options?: object }>>}
 */
const CAPTIONS = JSON.parse(readFileSync(new URL('captions.json', import.meta.url), 'utf8'))

/** Seconds that are shown. */
const [FIRST, LAST] = [6, 30]
/** Instants at which a window ends and the next begins. */
const BOUNDARIES = [10, 20]
/** Calls a second, from an instant on. */
const TRAFFIC = /** @type {const} */ ([
  [8, 5],
  [12, 2],
  [LAST, 0],
])
const CALLS = TRAFFIC.flatMap(([from, rate], i) => {
  const until = TRAFFIC[i + 1]?.[0] ?? from
  return Array.from({ length: (until - from) * rate }, (_, n) => from + n / rate)
})

const COLUMN = 18
const [BOX, STEP] = [6, 8]
const TOP = 136
const ROW = 76

/** @param {Readonly<Record<string, (options: any) => Policy>>} [registry] */
export function algorithms(registry = core) {
  // A period of the calendar is longer than the picture.
  const isShown = (/** @type {string} */ name) =>
    !Object.hasOwn(Object(registry[name])['options'] ?? {}, 'every')
  const names = Object.keys({ ...CAPTIONS, ...registry }).filter(isShown)
  const rows = names.map((name, i) => {
    const { note = '', inWords = '', options } = CAPTIONS[name] ?? {}
    const passed = callsPassed(/** @type {any} */ (registry[name])({ ...RULE, ...options }))
    return { name, note, inWords, passed, fullest: fullestSpan(passed), y: TOP + i * ROW }
  })
  const height = TOP + rows.length * ROW + 26
  const counts = rows.map(
    ({ name, fullest, inWords }) =>
      `${name} ${fullest.length}${inWords && `, all within ${lengthOf(fullest)} seconds, ${inWords}`}`,
  )
  const alt =
    `What a limit of ${LIMIT} in ${WINDOW_S} seconds lets through of the same calls, 5 a second and then 2 a second, by algorithm. ` +
    `Most in any ${WINDOW_S} seconds: ${counts.join('; ')}.`
  return { alt, svg: picture(alt, height, [...head(), ...rows.flatMap(row), ...axis(height)]) }
}

/** The instants of the calls that a policy admits, in seconds. @param {Policy} policy */
function callsPassed(policy) {
  const clock = new FakeClock()
  const limiter = createLimiter({
    name: 'picture',
    policies: [policy],
    store: memoryStore({ clock: clock.now }),
  })
  return CALLS.filter((second) => {
    clock.at(second * 1000)
    return /** @type {import('@sluice/core').Decision} */ (limiter.decide('caller')).allowed
  })
}

/** The calls of the span of one window that holds the most; of several the first. @param {readonly number[]} passed */
function fullestSpan(passed) {
  const spans = passed.map((first) => passed.filter((each) => each >= first && each < first + WINDOW_S))
  return spans.reduce((most, span) => (span.length > most.length ? span : most), [])
}

/** Whole seconds. @param {readonly number[]} span */
function lengthOf(span) {
  return Math.ceil((span.at(-1) ?? 0) - (span[0] ?? 0))
}

/** @param {number} second */
function across(second) {
  return MARGIN + (second - FIRST) * COLUMN
}

function head() {
  return [
    text('title', MARGIN, 44, `A limit of ${LIMIT} in ${WINDOW_S} seconds, by algorithm`),
    text('note', MARGIN, 70, 'The same calls in each row: 5 a second, then 2 a second.'),
    ...legend(100, [
      ['good', 'passes', MARGIN],
      ['rest', 'denied', MARGIN + 98],
    ]),
    text('note', WIDTH - MARGIN, 100, `most in ${WINDOW_S} s`, 'end'),
  ]
}

/** @param {{ name: string, note: string, passed: readonly number[], fullest: readonly number[], y: number }} row */
function row({ name, note, passed, fullest, y }) {
  const bottom = y + 16 + 5 * STEP
  const columns = Array.from({ length: LAST - FIRST }, (_, i) => FIRST + i).flatMap((second) => {
    const isIn = (/** @type {number} */ at) => Math.floor(at) === second
    const admitted = passed.filter(isIn).length
    return CALLS.filter(isIn).map((_, n) =>
      box(n < admitted ? 'good' : 'rest', across(second) + 2, bottom - (n + 1) * STEP + 2, COLUMN - 4, BOX),
    )
  })
  const isOver = fullest.length > LIMIT
  return [
    label(y + 4, name, note),
    ...BOUNDARIES.map((second) =>
      line('line', [across(second), y + 14], [across(second), bottom + 5], '3 4'),
    ),
    ...columns,
    ...(isOver ? bracket(fullest, bottom) : []),
    text(isOver ? 'value over' : 'value', WIDTH - MARGIN, bottom - 12, String(fullest.length), 'end'),
  ]
}

/** Marks the calls that are more than the limit within one window. @param {readonly number[]} span @param {number} bottom */
function bracket(span, bottom) {
  const [from, to] = [across(span[0] ?? 0) + 2, across(Math.ceil((span.at(-1) ?? 0) + 0.001)) - 2]
  return [
    line('bracket', [from, bottom + 4], [to, bottom + 4]),
    text('note over', across(TRAFFIC[1][0]) + 8, bottom - 24, `${span.length} in ${lengthOf(span)} s`),
  ]
}

/** @param {number} height */
function axis(height) {
  return [...BOUNDARIES, LAST].map((second) =>
    text('note', across(second), height - 16, `${second} s`, 'middle'),
  )
}
