// A page of the site that keeps what is asked of it: its longest task, how far it has moved, and all that its workers said.

/** @typedef {{ longest: number, shift: number, told: any[] }} Kept */

/**
 * An empty page in a context of its own.
 * @param {import('../verify.js').Part} part
 * @param {import('playwright-core').BrowserContextOptions} [options]
 */
export async function openPage({ browser }, options) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options })
  await page.addInitScript(keep)
  return page
}

/**
 * Opens an address, and waits until it has loaded, and drawn what it names.
 * @param {import('playwright-core').Page} page @param {string} address
 */
export async function visit(page, address) {
  await page.goto(address, { waitUntil: 'networkidle' })
  if (/playground(?:\/\w+)?\.html/.test(address)) await page.waitForSelector('.drawing svg')
}

/**
 * What was kept, from when it was asked last.
 * @param {import('playwright-core').Page} page
 * @returns {Promise<Kept>}
 */
export function kept(page) {
  return page.evaluate(() => {
    const { kept: all } = Object(globalThis)
    const { longest, shift, told } = all
    Object.assign(all, { longest: 0, shift: 0, told: [] })
    return { longest, shift, told }
  })
}

/**
 * Whether something is, or comes to be, in a page.
 * @template T
 * @param {import('playwright-core').Page} page @param {(given: T) => boolean} test @param {T} [given]
 */
export function comesTrue(page, test, given) {
  const found = page.waitForFunction(/** @type {any} */ (test), given, { timeout: 10_000 })
  return found.then(() => true).catch(() => false)
}

/** Runs in the page, and in the frames in which it makes its workers. */
function keep() {
  const top = Object(globalThis.top)
  /** @type {Kept} */
  const kept = (top.kept ??= { longest: 0, shift: 0, told: [] })
  const observer = new PerformanceObserver((list) => {
    for (const { entryType, duration, value } of /** @type {any[]} */ (list.getEntries()))
      if (entryType === 'longtask') kept.longest = Math.max(kept.longest, Math.round(duration))
      else kept.shift += value
  })
  for (const type of ['longtask', 'layout-shift']) observer.observe({ type, buffered: true })
  const { Worker: Own } = globalThis
  globalThis.Worker = class extends Own {
    /** @param {string | URL} address */
    constructor(address) {
      super(address)
      this.addEventListener('message', ({ data }) => kept.told.push(data))
    }
  }
}
