// A fleet that loses its Redis for some seconds, under each failure mode: what passes, and who has decided it. The library
// decides, on a clock of the picture's own; its store is elsewhere and stops answering.
import { install } from '@sinonjs/fake-timers'
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { guard } from '@sluice/core/store'
import { randomFrom } from '@sluice/harness/figures'
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

/** @import { FailureMode, Keyspace, Store } from '@sluice/core' */

const PROCESSES = 3
const LIMIT = 12
/** Calls a second in each process, all of one caller. */
const RATE = 15
const SECONDS = 12
const OUTAGE = /** @type {const} */ ([4, 8])
/** Milliseconds from a process to the store and back. */
const WAY_MS = 1
const POLICIES = [slidingLog({ limit: LIMIT, window: '1s' })]

/** @typedef {'store' | 'local' | 'none'} Decider */

/** @type {readonly (readonly [onStoreError: FailureMode, name: string, note: string, inBand: string])[]} */
const ROWS = [
  ['local', "'local'", 'the default: each process counts for itself', ''],
  [
    { mode: 'local', share: PROCESSES },
    `{ mode: 'local', share: ${PROCESSES} }`,
    'a third of the limit each',
    '',
  ],
  ['allow', "'allow'", 'all pass but those known to be banned', ''],
  ['deny', "'deny'", 'none passes', '503, retry in 1 s'],
  ['throw', "'throw'", 'none is decided: your code handles it', 'StoreError'],
]

/** The functions that the library reads time from. @type {import('@sinonjs/fake-timers').FakeMethod[]} */
const FAKED = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'Date',
  'performance',
]

const COLUMN = 36
/** The most calls of a second, and so the height of a bar. */
const BAR = PROCESSES * RATE
const TOP = 166
const ROW = 84
const HEIGHT = TOP + ROWS.length * ROW + 30
/** @type {Readonly<Record<Decider, string>>} */
const STYLES = { store: 'good', local: 'own', none: 'none' }

export async function outage() {
  const rows = []
  for (const [i, [onStoreError, name, note, inBand]] of ROWS.entries()) {
    const seconds = await simulate(onStoreError)
    const middle = seconds[OUTAGE[0] + 1]
    rows.push({ name, note, inBand, seconds, passing: middle ? sum(middle) : 0, y: TOP + i * ROW })
  }
  const alt =
    `What passes second by second, and who decides it, when ${PROCESSES} processes that share ${LIMIT} calls a second cannot reach Redis ` +
    `for ${OUTAGE[1] - OUTAGE[0]} seconds. Before and after, Redis decides and ${LIMIT} a second pass. Meanwhile, by onStoreError: ` +
    `${rows.map(({ name, passing, note }) => `${name} ${passing} a second (${note})`).join('; ')}.`
  return { alt, svg: picture(alt, HEIGHT, [...head(), ...rows.flatMap(row), ...axis()]) }
}

/**
 * The calls that pass in each second, by who decided them.
 * @param {FailureMode} onStoreError
 * @returns {Promise<readonly Record<Decider, number>[]>}
 */
async function simulate(onStoreError) {
  const seconds = Array.from({ length: SECONDS }, () => ({ store: 0, local: 0, none: 0 }))
  const clock = install({ now: 0, toFake: FAKED })
  const { random } = Math
  Math.random = randomFrom(7) // the instants at which the store is probed
  try {
    const server = memoryStore({ clock: () => Math.round(clock.now * 1000) })
    const limiters = Array.from({ length: PROCESSES }, () => {
      const limiter = createLimiter({
        name: 'picture',
        policies: POLICIES,
        store: elsewhere(server, clock),
        onStoreError,
      })
      limiter.on('decision', ({ decision, decidedBy }) => {
        const second = seconds[Math.floor(clock.now / 1000)]
        if (decision.allowed && second) second[/** @type {Decider} */ (decidedBy)]++
      })
      return limiter
    })
    for (let call = 0; call < SECONDS * BAR; call++) {
      await clock.tickAsync((1000 * call) / BAR - clock.now)
      limiters[call % PROCESSES]?.consume('caller').catch(() => {})
    }
    await clock.tickAsync(100)
  } finally {
    Math.random = random
    clock.uninstall()
  }
  return seconds
}

/**
 * The way of one process to a store that all share, and that cannot be reached for a while.
 * @param {Store} server
 * @param {{ now: number }} clock
 * @returns {Store}
 */
function elsewhere(server, clock) {
  return {
    guard,
    keyspace(name, policies, report) {
      const state = server.keyspace(name, policies, report)
      /** @type {Keyspace['decide']} */
      const decide = (...call) =>
        new Promise((resolve) => {
          const isReached = !isOut(clock.now / 1000)
          if (isReached) setTimeout(() => resolve(state.decide(...call)), WAY_MS)
        })
      return /** @type {Keyspace} */ ({ policies, decide })
    },
    now: () => Math.round(clock.now * 1000),
    close() {},
  }
}

/** Whether the store does not answer in this second. @param {number} second */
function isOut(second) {
  return second >= OUTAGE[0] && second < OUTAGE[1]
}

/** @param {Record<Decider, number>} passes */
function sum({ store, local, none }) {
  return store + local + none
}

/** The x at which a second begins. @param {number} second */
function across(second) {
  return MARGIN + second * COLUMN
}

function head() {
  return [
    text('title', MARGIN, 44, `${OUTAGE[1] - OUTAGE[0]} seconds without Redis`),
    text(
      'note',
      MARGIN,
      70,
      `${PROCESSES} processes share ${LIMIT} calls a second (dashed); ${BAR} come in.`,
    ),
    ...legend(100, [
      ['good', 'Redis decides', MARGIN],
      ['own', 'the process', MARGIN + 158],
      ['none', 'nobody', MARGIN + 290],
    ]),
    box('band', across(OUTAGE[0]), 116, (OUTAGE[1] - OUTAGE[0]) * COLUMN, HEIGHT - 116 - 36),
    text('name', MARGIN, 138, 'onStoreError'),
    text('note', across((OUTAGE[0] + OUTAGE[1]) / 2), 138, 'no Redis', 'middle'),
    text('note', WIDTH - MARGIN, 138, 'meanwhile pass', 'end'),
  ]
}

/**
 * Draws one failure mode: a bar for each second, the calls that passed stacked by who decided them, and the limit as a dashed line.
 * `passing` is how many passed in a second of the outage, and `inBand` a text for the bars that are missing there.
 * @param {{ name: string, note: string, inBand: string, seconds: readonly Record<Decider, number>[], passing: number, y: number }} row
 */
function row({ name, note, inBand, seconds, passing, y }) {
  const bottom = y + 14 + BAR
  const bars = seconds.flatMap((passes, second) => {
    let top = bottom
    return Object.entries(passes)
      .filter(([, count]) => count > 0)
      .map(([decider, count]) => {
        top -= count
        return box(STYLES[/** @type {Decider} */ (decider)], across(second) + 3, top, COLUMN - 6, count)
      })
  })
  const limit = bottom - LIMIT
  return [
    label(y + 4, name, note),
    line('line', [across(0), bottom + 0.75], [across(SECONDS), bottom + 0.75]),
    ...bars,
    line('line', [across(0), limit], [across(SECONDS), limit], '3 4'),
    ...(inBand ? [text('note', across((OUTAGE[0] + OUTAGE[1]) / 2), bottom - 18, inBand, 'middle')] : []),
    text(passing > LIMIT ? 'value over' : 'value', WIDTH - MARGIN, bottom - 5, `${passing}/s`, 'end'),
  ]
}

function axis() {
  return [0, OUTAGE[0], OUTAGE[1], SECONDS].map((second) =>
    text('note', across(second), HEIGHT - 14, `${second} s`, second === 0 ? 'start' : 'middle'),
  )
}
