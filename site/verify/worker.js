// The playground's own worker, as its page makes it, asked from outside.

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 */
export async function openWorker(browser, url) {
  const page = await browser.newPage()
  // The worker is kept where it is made, which is a frame of the page.
  await page.addInitScript(() => {
    const { Worker: Own } = globalThis
    Object.assign(globalThis, {
      Worker: class extends Own {
        /** @param {string} address */
        constructor(address) {
          super(address)
          Object.assign(globalThis.top ?? globalThis, { made: this })
        }
      },
    })
  })
  await page.goto(`${url}playground.html`)
  await page.waitForSelector('.drawing svg')
  return {
    page,
    close: () => page.close(),
    /**
     * @param {object} question
     * @returns {Promise<any>}
     */
    ask: async (question) =>
      JSON.parse(
        await page.evaluate((asked) => {
          const { made } = /** @type {{ made: Worker }} */ (/** @type {unknown} */ (globalThis))
          const id = Math.floor(Math.random() * 1e9) + 1e6
          return new Promise((resolve) => {
            /** @param {MessageEvent} event */
            const heard = ({ data }) => {
              if (data.id !== id) return
              made.removeEventListener('message', heard)
              const text = JSON.stringify(data, (_, value) => {
                if (ArrayBuffer.isView(value)) return Array.from(/** @type {Float64Array} */ (value), String)
                return typeof value === 'number' ? String(value) : value
              })
              resolve(text)
            }
            made.addEventListener('message', heard)
            made.postMessage({ ...asked, id })
          })
        }, question),
      ),
  }
}
