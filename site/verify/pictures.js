// The pictures of what people look at: screenshots in site/screenshots, drawn from fixed scenarios with a JSON beside each that says what
// stands where, and those for social networks, of the first page and of each preset. To be looked at before they are committed:
// npm run verify -- site pictures. The part `drawn` holds the stored ones against the site.
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { PRESETS } from '../playground/presets.ts'
import { openPage, visit } from './page.js'

export const OUT = 'site/screenshots'
const MOST_BYTES = 2_500_000
const SIZES = { desktop: { width: 1280, height: 1000 }, phone: { width: 390, height: 800 } }

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  for (const folder of [OUT, 'site/public/playground']) mkdirSync(folder, { recursive: true })
  let [bytes, count] = [0, 0]
  await shots(part, async (page, name, path = `${OUT}/${name}.png`) => {
    const seen = await settled(page)
    writeFileSync(`${OUT}/${name}.json`, `[\n${seen.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`)
    await page.screenshot({ path })
    bytes += statSync(path).size
    count++
  })
  part.check(bytes <= MOST_BYTES, `${count} screenshots take ${bytes} bytes, at most ${MOST_BYTES}`)
}

/** @typedef {[what: string, text: string, ...box: number[]]} Standing */

/**
 * What is seen once two looks, half a second apart, find the same: the controls and texts, with their boxes.
 * @param {Page} page
 * @returns {Promise<Standing[]>}
 */
export async function settled(page) {
  for (let before = ''; ; await page.waitForTimeout(500)) {
    const now = await page.evaluate(standing)
    if (JSON.stringify(now) === before) return now
    before = JSON.stringify(now)
  }
}

/** @returns {Standing[]} */
function standing() {
  const all = document.querySelectorAll(
    'a, button, input, select, textarea, label, h1, h2, h3, p, li, pre, td, th, svg, figcaption',
  )
  return [...all].flatMap((each) => {
    const { x, y, width, height } = each.getBoundingClientRect()
    const isSeen = width > 0 && height > 0 && y < innerHeight && y + height > 0 && x < innerWidth
    if (!isSeen || !Object(each).checkVisibility()) return []
    const text = Object(each).value ?? each.textContent.trim().replaceAll(/\s+/g, ' ').slice(0, 120)
    return [[each.tagName.toLowerCase(), text, ...[x, y, width, height].map(Math.round)]]
  })
}

/**
 * What is looked at, by name: the address, what is done there, and on a phone the part that is scrolled to, with so many pixels above it.
 * @type {Record<string, [path: string, act: (page: Page) => Promise<unknown>, part?: string, above?: number]>}
 */
const SHOWN = {
  first: ['index.html', async () => {}],
  playground: [
    `playground.html#${PRESETS.find(({ id }) => id === 'boundary')?.fragment}`,
    choose,
    '.totals',
    360,
  ],
  log: ['log.html', takeSample, '.sliders', 80],
  algorithms: ['algorithms.html#fixedwindow', async () => {}, '#fixedwindow ~ .picture', 64],
}

/** @param {Page} page */
async function choose(page) {
  await page.locator('.chosen').first().focus()
  for (let i = 0; i < 24; i++) await page.keyboard.press('ArrowRight')
  await page.waitForSelector('.formats pre')
  await page.evaluate(() => window.scrollTo(0, 0))
}

/** @param {Page} page */
export async function takeSample(page) {
  await page.getByRole('button', { name: 'Take the sample' }).click()
  await page.waitForSelector('.log td >> text=203.0.113.7')
}

/**
 * Opens each page that has a screenshot, in each size and theme; then those of the cards, which are drawn to a path of their own.
 * @param {import('../verify.js').Part} part
 * @param {(page: Page, name: string, path?: string) => Promise<void>} look
 */
export async function shots(part, look) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const page = await openPage(part, { viewport, colorScheme, reducedMotion: 'reduce' })
      for (const [name, [path, act, below, above = 0]] of Object.entries(SHOWN)) {
        await visit(page, part.url + path)
        await act(page)
        const place = page.locator(below ?? 'body').first()
        const top = await place.evaluate((each) => each.getBoundingClientRect().top)
        if (size === 'phone' && below) await page.evaluate((by) => scrollBy(0, by), top - above)
        await look(page, `${name}-${size}-${colorScheme}`)
      }
      await page.close()
    }
  }
  const page = await openPage(part, { viewport: { width: 1200, height: 630 }, reducedMotion: 'reduce' })
  for (const name of ['social', ...PRESETS.map(({ id }) => `playground/${id}`)]) {
    await visit(page, `${part.url}${name === 'social' ? 'index' : name}.html`)
    if (name !== 'social') await page.addStyleTag({ content: CARD })
    await look(page, `card-${name.replace('playground/', '')}`, `site/public/${name}.png`)
  }
  await page.close()
}

/** What a card leaves out of the playground. */
const CARD = `.VPNav, .presets, .traffic, .toolbar, fieldset, .chosen, .columns ~ *, .playground > .quiet:first-of-type { display: none !important }
.playground { padding: 40px 48px; max-width: none; font-size: 20px } .playground h1 { font-size: 40px } .playground .totals { font-size: 19px } .strip, .drawing .strip { height: 150px }
.inner:has(.strip-box + .strip-box) .strip { height: 90px } .lane { height: 90px } .strip-head, .ticks, .plot { font-size: 16px } .VPContent { padding: 0 !important; margin: 0 !important }`
