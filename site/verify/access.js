// axe finds nothing on any kind of page, light and dark, wide and at 360 px; nothing is wider than the page, nor code at 1280 px than
// its column, on any page; and by keyboard alone the playground is used, and the focus seen on the first page and the log's.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { htmlOf } from '../checks.js'
import { openPage, visit } from './page.js'
import { takeSample } from './pictures.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')
/** One of each kind. */
const PAGES =
  `index start how-do-i outbound-queue algorithms errors api/core/interfaces/LimiterOptions migrate/bottleneck playground log`
    .split(' ')
    .map((name) => `${name}.html`)

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  /** @type {Set<string>} */
  const found = new Set()
  /** @type {Set<string>} */
  const wide = new Set()
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const width of [1280, 360]) {
      const viewport = { width, height: 800 }
      const page = await openPage(part, { colorScheme, viewport, bypassCSP: true, reducedMotion: 'reduce' })
      for (const name of PAGES) {
        await visit(page, part.url + name)
        await page.evaluate(AXE)
        for (const { id, nodes } of await page.evaluate(violations)) {
          const { target, failureSummary } = nodes[0]
          const how = failureSummary.split('\n')[1]
          found.add(`${name} ${colorScheme} ${width}: ${id} ${target.join(' ')} ${how}`)
        }
        for (const each of await page.evaluate(wider)) wide.add(`${name} at ${width} px: ${each}`)
      }
      await page.close()
    }
  }
  for (const each of found) console.log(each)
  part.check(found.size === 0, `axe: ${found.size} findings on ${PAGES.length} pages, two themes and widths`)
  const all = htmlOf('site/dist')
  const page = await part.browser.newPage({ javaScriptEnabled: false })
  for (const name of all) {
    await page.goto(part.url + name)
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 })
      for (const each of await page.evaluate(wider)) wide.add(`${name} at ${width} px: ${each}`)
    }
  }
  await page.close()
  part.check(
    wide.size === 0,
    `${wide.size} wider pages or blocks of ${all.length} pages ${[...wide].join('; ')}`,
  )
  await byKeyboard(part)
  await isSeen(part, 'index.html', async () => {}, [/^Express$/, /^Limit requests/])
  await isSeen(part, 'log.html', takeSample, [/^Choose a file/, /^Take the/, /^Window:/, /^Limit:/, /^Copy/])
}

/** Runs in the page. @returns {Promise<any[]>} */
async function violations() {
  return (await Object(globalThis).axe.run()).violations
}

/** What is wider than its place; code scrolls by itself on a phone. Runs in the page. */
function wider() {
  const { scrollWidth } = document.documentElement
  const blocks = innerWidth >= 1280 ? [...document.querySelectorAll('pre')] : []
  const code = blocks.filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1)
  const page = scrollWidth > innerWidth ? [`the page is ${scrollWidth} px wide`] : []
  return [...page, ...code.map((each) => `wider code ${each.innerText.slice(0, 60)}`)]
}

/** @param {import('../verify.js').Part} part */
async function byKeyboard(part) {
  const page = await openPage(part)
  await visit(page, `${part.url}playground.html`)
  const reached = [await tabTo(page, /^limit$/)]
  await page.keyboard.press('Control+a')
  await page.keyboard.type('3.5')
  const problem = await page.locator('.field.wrong .problem').first().innerText()
  await page.keyboard.press('Control+a')
  await page.keyboard.type('7')
  reached.push(await tabTo(page, /^Calls under limits 1/), await page.evaluate(isRinged))
  for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowRight')
  await page.waitForSelector('.formats pre')
  const said = await page.locator('.chosen').first().getAttribute('aria-valuetext')
  reached.push(await tabTo(page, /^Zoom in$/, 'Shift+Tab'))
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => location.hash.includes('to='))
  reached.push(await tabTo(page, /^Copy the link$/))
  const isSet = page.url().includes('limit:7') && page.url().includes('to=')
  await page.close()
  part.check(reached.every(Boolean) && isSet, `by keyboard alone a call is chosen: ${said}`)
  part.check(problem.includes('got 3.5'), `a bad number shows: ${problem}`)
}

/**
 * Whether controls of a page are reached by the key Tab, one after the other, and seen to be.
 * @param {import('../verify.js').Part} part @param {string} name
 * @param {typeof takeSample} act @param {readonly RegExp[]} controls
 */
async function isSeen(part, name, act, controls) {
  const page = await openPage(part)
  await visit(page, part.url + name)
  await act(page)
  await page.locator('h1').first().click() // from where the next control is tabbed to
  const lost = []
  for (const each of controls)
    if (!((await tabTo(page, each)) && (await page.evaluate(isRinged)))) lost.push(each.source)
  await page.close()
  part.check(lost.length === 0, `by keyboard alone the focus is seen on ${name} ${lost.join(' ')}`)
}

/** @param {import('playwright-core').Page} page @param {RegExp} wanted */
async function tabTo(page, wanted, key = 'Tab') {
  for (let i = 0; i < 120; i++) {
    await page.keyboard.press(key)
    if (wanted.test(await page.evaluate(nameOfActive))) return true
  }
  return false
}

/** Whether a ring is seen around what has the focus, or around its label. Runs in the page. */
function isRinged() {
  const active = Object(document.activeElement)
  return [active, ...(active.labels ?? [])].some((each) => {
    const { outlineStyle, opacity } = getComputedStyle(each)
    return outlineStyle !== 'none' && opacity !== '0' && each.offsetWidth > 1
  })
}

/** Runs in the page. @returns {string} */
function nameOfActive() {
  const active = Object(document.activeElement)
  return active.getAttribute('aria-label') ?? active.labels?.[0]?.textContent ?? active.textContent.trim()
}
