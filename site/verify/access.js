// axe finds nothing on any kind of page, light and dark, wide and at 360 px; nothing is wider than the page, nor code at 1280 px than
// its column; and the playground is used by keyboard alone.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

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

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  /** @type {string[]} */
  const found = []
  /** @type {string[]} */
  const wide = []
  for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
    for (const width of [1280, 360]) {
      const context = await browser.newContext({
        colorScheme,
        viewport: { width, height: 800 },
        bypassCSP: true,
        reducedMotion: 'reduce',
      })
      const page = await context.newPage()
      for (const name of PAGES) {
        await page.goto(url + name, { waitUntil: 'networkidle' })
        await page.evaluate(AXE)
        const violations =
          /** @type {{ id: string, nodes: { target: string[], failureSummary: string }[] }[]} */ (
            await page.evaluate(async () => (await /** @type {any} */ (globalThis).axe.run()).violations)
          )
        for (const { id, nodes } of violations)
          found.push(
            `${name} ${colorScheme} ${width}: ${id} ${nodes[0]?.target.join(' ')} ${nodes[0]?.failureSummary.split('\n')[1]}`,
          )
        const scroll = await page.evaluate(() => document.documentElement.scrollWidth)
        if (scroll > width) wide.push(`${name} is ${scroll} px wide`)
        const blocks = await page.locator('pre:visible').all()
        for (const block of width === 1280 ? blocks : [])
          if (await block.evaluate((each) => each.scrollWidth > each.clientWidth + 1))
            wide.push(`${name} has wider code: ${(await block.innerText()).slice(0, 60)}`)
      }
      await context.close()
    }
  }
  for (const each of new Set(found)) console.log(each)
  return [
    [
      found.length === 0,
      `axe on ${PAGES.length} pages, light and dark, at 1280 and 360 px: ${found.length} findings`,
    ],
    [
      wide.length === 0,
      `nothing is wider than the page, and no code at 1280 px than its column ${wide.join('; ')}`,
    ],
    ...(await byKeyboard(browser, url)),
  ]
}

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
async function byKeyboard(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
  await page.goto(`${url}playground.html`)
  await page.waitForSelector('.drawing svg')
  const label = () =>
    page.evaluate(
      () =>
        document.activeElement?.getAttribute('aria-label') ??
        /** @type {HTMLInputElement} */ (document.activeElement)?.labels?.[0]?.textContent ??
        document.activeElement?.textContent?.trim() ??
        '',
    )
  /** @param {RegExp} wanted */
  const tabTo = async (wanted, key = 'Tab') => {
    for (let i = 0; i < 120; i++) {
      await page.keyboard.press(key)
      if (wanted.test(await label())) return true
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
  const outlined = await page.evaluate(
    () => getComputedStyle(/** @type {Element} */ (document.activeElement)).outlineStyle !== 'none',
  )
  for (let i = 0; i < 4; i++) await page.keyboard.press('ArrowRight')
  await page.waitForSelector('.formats pre')
  const said = await page.locator('.chosen').first().getAttribute('aria-valuetext')
  reached.push(await tabTo(/^Zoom in$/, 'Shift+Tab'))
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => location.hash.includes('to='))
  reached.push(await tabTo(/^Copy the link$/))
  const { hash } = new URL(page.url())
  await page.close()
  return [
    [
      reached.every(Boolean) && outlined && hash.includes('limit:7') && hash.includes('to='),
      `by keyboard alone: a limit typed, a call chosen (${said}), zoomed, the link reached`,
    ],
    [problem.includes('got 3.5'), `a bad number shows: ${problem}`],
  ]
}
