// The screenshots in site/screenshots and the picture for social networks, drawn from fixed scenarios. To be looked at before they
// are committed: npm run verify -- site pictures.
import { mkdirSync, statSync } from 'node:fs'
import { PRESETS } from '../playground/presets.ts'

const OUT = 'site/screenshots'
const MOST_BYTES = 1_500_000
const SIZES = { desktop: { width: 1280, height: 1000 }, phone: { width: 390, height: 800 } }

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  mkdirSync(OUT, { recursive: true })
  const boundary = PRESETS.find(({ id }) => id === 'boundary')
  let bytes = 0
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const page = await browser.newPage({ viewport, colorScheme, reducedMotion: 'reduce' })
      await page.goto(`${url}index.html`, { waitUntil: 'networkidle' })
      bytes += await shoot(page, `first-${size}-${colorScheme}`)
      await page.goto(`${url}playground.html#${boundary?.fragment}`)
      await page.waitForSelector('.drawing svg')
      await page.locator('.chosen').first().focus()
      for (let i = 0; i < 24; i++) await page.keyboard.press('ArrowRight')
      await page.waitForSelector('.formats pre')
      if (size === 'phone') await page.locator('.columns').scrollIntoViewIfNeeded()
      if (size === 'phone')
        await page.evaluate(() =>
          scrollTo(0, (document.querySelector('.totals')?.getBoundingClientRect().top ?? 0) + scrollY - 360),
        )
      else await page.evaluate(() => scrollTo(0, 0))
      bytes += await shoot(page, `playground-${size}-${colorScheme}`)
      await page.goto(`${url}algorithms.html#fixedwindow`, { waitUntil: 'networkidle' })
      const picture = page.locator('#fixedwindow ~ .picture').first()
      if (size === 'phone')
        await picture.evaluate((each) => scrollBy(0, each.getBoundingClientRect().top - 64))
      bytes += await shoot(page, `algorithms-${size}-${colorScheme}`)
      await page.close()
    }
  }
  const page = await browser.newPage({ viewport: { width: 1200, height: 630 }, reducedMotion: 'reduce' })
  await page.goto(`${url}index.html`, { waitUntil: 'networkidle' })
  await page.screenshot({ path: 'site/public/social.png' })
  await page.close()
  return [[bytes <= MOST_BYTES, `12 screenshots take ${bytes} bytes together, at most ${MOST_BYTES}`]]
}

/**
 * @param {import('playwright-core').Page} page
 * @param {string} name
 */
async function shoot(page, name) {
  const path = `${OUT}/${name}.png`
  await page.screenshot({ path })
  return statSync(path).size
}
