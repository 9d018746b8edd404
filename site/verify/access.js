// axe finds nothing on any kind of page, light and dark, wide and at 360 px; nothing is wider than the page, nor code at 1280 px than
// its column; and the playground is used by keyboard alone.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { openPage, visit } from './page.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core'), 'utf8')
const PAGES = [
  'index.html',
  'start.html',
  'how-do-i.html',
  'outbound-migration.html',
  'algorithms.html',
  'errors.html',
  'api/core/interfaces/LimiterOptions.html',
  'migrate/bottleneck.html',
  'playground.html',
  'log.html',
]

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
  const where = `axe on ${PAGES.length} pages, light and dark, at 1280 and 360 px`
  part.check(found.size === 0, `${where}: ${found.size} findings`)
  const which = [...wide].join('; ')
  part.check(
    wide.size === 0,
    `nothing is wider than the page, and no code at 1280 px than its column ${which}`,
  )
  await byKeyboard(part)
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
  /** @param {RegExp} wanted */
  const tabTo = async (wanted, key = 'Tab') => {
    for (let i = 0; i < 120; i++) {
      await page.keyboard.press(key)
      if (wanted.test(await page.evaluate(nameOfActive))) return true
    }
    return false
  }
  const reached = [await tabTo(/^limit$/)]
  await page.keyboard.press('Control+a')
  await page.keyboard.type('3.5')
  const problem = await page.locator('.field.wrong .problem').first().innerText()
  await page.keyboard.press('Control+a')
  await page.keyboard.type('7')
  reached.push(await tabTo(/^Calls under limits 1/))
  const outline = await page.locator(':focus').evaluate((each) => getComputedStyle(each).outlineStyle)
  for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowRight')
  await page.waitForSelector('.formats pre')
  const said = await page.locator('.chosen').first().getAttribute('aria-valuetext')
  reached.push(await tabTo(/^Zoom in$/, 'Shift+Tab'))
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => location.hash.includes('to='))
  reached.push(await tabTo(/^Copy the link$/))
  const isSet = page.url().includes('limit:7') && page.url().includes('to=')
  await page.close()
  const done = `by keyboard alone: a limit typed, a call chosen (${said}), zoomed, the link reached`
  part.check(reached.every(Boolean) && outline !== 'none' && isSet, done)
  part.check(problem.includes('got 3.5'), `a bad number shows: ${problem}`)
}

/** Runs in the page. @returns {string} */
function nameOfActive() {
  const active = Object(document.activeElement)
  return active.getAttribute('aria-label') ?? active.labels?.[0]?.textContent ?? active.textContent.trim()
}
