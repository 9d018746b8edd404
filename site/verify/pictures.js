// The pictures of what people look at: screenshots in site/screenshots, drawn from fixed scenarios with a JSON beside each that says what
// stands where, and those for social networks, of the first page and of each preset. To be looked at before they are committed:
// npm run verify -- site pictures. The part `drawn` holds the stored ones against the site.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { PRESETS } from '../playground/presets.ts'

const OUT = 'site/screenshots'
const MOST_BYTES = 2_000_000
const SIZES = { desktop: { width: 1280, height: 1000 }, phone: { width: 390, height: 800 } }

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  mkdirSync(OUT, { recursive: true })
  let [bytes, count] = [0, 0]
  await shots(browser, url, async (page, name) => {
    const seen = await settled(page)
    writeFileSync(`${OUT}/${name}.json`, `[\n${seen.map((each) => JSON.stringify(each)).join(',\n')}\n]\n`)
    await page.screenshot({ path: `${OUT}/${name}.png` })
    bytes += statSync(`${OUT}/${name}.png`).size
    count++
  })
  await drawCards(browser, url)
  return [[bytes <= MOST_BYTES, `${count} screenshots take ${bytes} bytes together, at most ${MOST_BYTES}`]]
}

/**
 * The names of stored screenshots that show something else than the site.
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 */
export async function staleShots(browser, url) {
  /** @type {string[]} */
  const stale = []
  let count = 0
  await shots(browser, url, async (page, name) => {
    count++
    const file = `${OUT}/${name}.json`
    const stored = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
    const now = await settled(page)
    const isSame = now.length === stored.length && now.every((each, i) => isLike(each, stored[i]))
    if (!isSame) stale.push(name)
  })
  return { count, stale }
}

/** @typedef {[what: string, text: string, ...box: number[]]} Standing */

/**
 * Whether two are the same control or text in the same place, as far as fonts of machines are alike.
 * @param {Standing} one
 * @param {Standing} other
 */
function isLike([what, text, ...box], [otherWhat, otherText, ...otherBox]) {
  return (
    what === otherWhat &&
    text === otherText &&
    box.every((each, i) => Math.abs(each - (otherBox[i] ?? 0)) <= 3)
  )
}

/**
 * What is seen once two looks, half a second apart, find the same.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<Standing[]>}
 */
async function settled(page) {
  let [before, now] = ['', await standing(page)]
  while (JSON.stringify(now) !== before) {
    before = JSON.stringify(now)
    await page.waitForTimeout(500)
    now = await standing(page)
  }
  return now
}

/**
 * The controls and texts that are seen, with their boxes.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<Standing[]>}
 */
function standing(page) {
  return page.evaluate(() => {
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
  })
}

/**
 * Opens each page that has a screenshot, in each size and theme.
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @param {(page: import('playwright-core').Page, name: string) => Promise<void>} visit
 */
async function shots(browser, url, visit) {
  const boundary = PRESETS.find(({ id }) => id === 'boundary')
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' })
      /** @param {string} name */
      const shot = (name) => visit(page, `${name}-${size}-${colorScheme}`)
      /** @param {string} selector @param {number} above */
      const scrollTo = (selector, above) =>
        page
          .locator(selector)
          .first()
          .evaluate((each, top) => scrollBy(0, each.getBoundingClientRect().top - top), above)
      await page.goto(`${url}index.html`, { waitUntil: 'networkidle' })
      await shot('first')
      await page.goto(`${url}playground.html#${boundary?.fragment}`)
      await page.waitForSelector('.drawing svg')
      await page.locator('.chosen').first().focus()
      for (let i = 0; i < 24; i++) await page.keyboard.press('ArrowRight')
      await page.waitForSelector('.formats pre')
      await page.evaluate(() => window.scrollTo(0, 0))
      if (size === 'phone') await scrollTo('.totals', 360)
      await shot('playground')
      await page.goto(`${url}log.html`, { waitUntil: 'networkidle' })
      await page.getByRole('button', { name: 'Take the sample' }).click()
      await page.waitForSelector('.log td >> text=192.0.2.66')
      if (size === 'phone') await scrollTo('.sliders', 80)
      await shot('log')
      await page.goto(`${url}algorithms.html#fixedwindow`, { waitUntil: 'networkidle' })
      if (size === 'phone') await scrollTo('#fixedwindow ~ .picture', 64)
      await shot('algorithms')
      await page.close()
    }
  }
}

/** What a card leaves out of the playground. */
const CARD = `.VPNav, .presets, .traffic, .toolbar, fieldset, .chosen, .columns ~ *, .playground > .quiet:first-of-type { display: none !important }
.playground { padding: 40px 48px; max-width: none; font-size: 20px } .playground h1 { font-size: 40px } .strip, .drawing .strip { height: 150px }
.lane { height: 90px } .strip-head, .ticks, .plot { font-size: 16px } .VPContent { padding: 0 !important; margin: 0 !important }`

/**
 * The pictures for social networks.
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 */
async function drawCards(browser, url) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 630 }, reducedMotion: 'reduce' })
  await page.goto(`${url}index.html`, { waitUntil: 'networkidle' })
  await page.screenshot({ path: 'site/public/social.png' })
  mkdirSync('site/public/playground', { recursive: true })
  for (const { id } of PRESETS) {
    await page.goto(`${url}playground/${id}.html`)
    await page.waitForSelector('.drawing svg')
    await page.addStyleTag({ content: CARD })
    await page.screenshot({ path: `site/public/playground/${id}.png` })
  }
  await page.close()
}
