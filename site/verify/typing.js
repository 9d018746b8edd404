// Typed text shows within 100 ms and no task takes longer; 100,000 calls under all algorithms are decided and drawn within a
// second. Each figure is the median of some tries, as others use the machine too.

import { algorithms } from '@sluice/core/store'
import { MOST_COLUMNS } from '../playground/scenario.ts'
import { kept, openPage, visit } from './page.js'

const POLICIES = Object.entries(algorithms)
  .filter(([, { options }]) => 'window' in options)
  .map(([name]) => `${name}(limit:5000,window:10s)`)
/** All algorithms over as many columns as there may be. */
const LIMITS = Array.from({ length: MOST_COLUMNS }, (_, column) =>
  POLICIES.filter((_policy, i) => i % MOST_COLUMNS === column).join('+'),
)
const LARGE = `2&kind=poisson&rate=10000&span=10s&keys=50&limits=${LIMITS.join('&limits=')}`

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const { url, check } = part
  const page = await openPage(part)
  /** @param {number[]} rates */
  const typed = async (...rates) => {
    await kept(page)
    const times = []
    for (const rate of rates) times.push(await page.evaluate(type, `${rate}`))
    const ms = times.toSorted((one, other) => one - other)[times.length >> 1] ?? NaN
    return { ms, longest: (await kept(page)).longest }
  }
  await visit(page, `${url}playground.html`)
  const small = await typed(3, 4, 5, 6, 7, 8, 9, 10, 11)
  check(small.ms <= 100, `what is typed shows after ${small.ms} ms, at most 100`)
  check(small.longest <= 100, `the longest task while typing takes ${small.longest} ms, at most 100`)
  await page.evaluate((fragment) => void (location.hash = fragment), LARGE)
  await page.waitForFunction(() => document.querySelectorAll('.drawing svg').length >= 10)
  const large = await typed(9999, 9998, 9997, 9996, 9995)
  const all = `100,000 calls under ${POLICIES.length} algorithms`
  check(large.ms <= 1000, `${all} show after ${large.ms} ms, at most 1000`)
  // Letters that come while a run is under way end it.
  const next = await typed(9)
  check(next.ms <= 250, `a small run after a large one shows after ${next.ms} ms`)
  const longest = Math.max(large.longest, next.longest)
  check(longest <= 100, `the longest task with 100,000 calls takes ${longest} ms, at most 100`)
  await page.close()
}

/**
 * Types into the first field, and returns the milliseconds until the picture has changed. Runs in the page.
 * @param {string} text
 * @returns {Promise<number>}
 */
async function type(text) {
  const field = /** @type {HTMLInputElement} */ (document.querySelector('.traffic input'))
  const drawn = () => document.querySelector('.drawing .inner')?.innerHTML
  const [before, start] = [drawn(), performance.now()]
  field.value = text
  field.dispatchEvent(new Event('input', { bubbles: true }))
  while (drawn() === before) await new Promise(requestAnimationFrame)
  return Math.round(performance.now() - start)
}
