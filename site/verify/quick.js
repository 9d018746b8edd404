// The first page and the playground: what they weigh, what they ask for, and whether they move while they load.
import { gzipSync } from 'node:zlib'

const MOST_BYTES = 120_000
const MOST_REQUESTS = 14

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  const first = await loaded(browser, `${url}index.html`)
  const playground = await loaded(browser, `${url}playground.html`)
  return [
    [
      first.bytes <= MOST_BYTES,
      `the first page takes ${first.bytes} bytes gzip, at most ${MOST_BYTES} (the playground ${playground.bytes})`,
    ],
    [
      first.requests <= MOST_REQUESTS,
      `the first page makes ${first.requests} requests, at most ${MOST_REQUESTS} (the playground ${playground.requests})`,
    ],
    [
      first.shift === 0 && playground.shift < 0.001,
      `layout shift of the first page ${first.shift}, of the playground ${playground.shift.toFixed(4)}`,
    ],
  ]
}

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 */
async function loaded(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } })
  const page = await context.newPage()
  /** @type {Promise<number>[]} */
  const sizes = []
  page.on(
    'response',
    (response) =>
      void (
        response.url().startsWith('http') &&
        sizes.push(
          response.body().then(
            (body) => gzipSync(body).length,
            () => 0,
          ),
        )
      ),
  )
  await page.addInitScript(() => {
    Object.assign(globalThis, { shift: 0 })
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries())
        /** @type {any} */ (globalThis).shift += /** @type {any} */ (entry).value
    }).observe({ type: 'layout-shift', buffered: true })
  })
  await page.goto(url, { waitUntil: 'networkidle' })
  await page.waitForTimeout(1000)
  const shift = /** @type {number} */ (await page.evaluate(() => /** @type {any} */ (globalThis).shift))
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  await context.close()
  return { bytes, requests: sizes.length, shift }
}
