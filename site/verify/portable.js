// One folder under any base path, every page of it without a failed request, a refused script or an error; and without scripts.
import { htmlOf } from '../checks.js'
import { serve } from './serve.js'

/** Pages beside those at the top. */
const SOME =
  /^(?:api\/core\/(?:index|README|interfaces\/LimiterOptions)|(?:migrate|recipes|packages)\/|decisions\/index)/

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  const pages = htmlOf('site/dist').filter(
    (name) => name !== '404.html' && (!name.includes('/') || SOME.test(name)),
  )
  const other = await serve('site/dist', '/')
  /** @type {string[]} */
  const wrong = []
  for (const base of [url, other.url]) {
    const page = await browser.newPage()
    const { origin } = new URL(base)
    page.on(
      'console',
      (message) => void (message.type() === 'error' && wrong.push(`${page.url()}: ${message.text()}`)),
    )
    page.on('pageerror', (error) => void wrong.push(`${page.url()}: ${error.message}`))
    page.on('request', (request) => {
      if (!request.url().startsWith(origin) && !/^(?:data|blob):/.test(request.url()))
        wrong.push(`${page.url()} asks ${request.url()}`)
    })
    for (const name of base === url ? pages : pages.slice(0, 5))
      await page.goto(base + name, { waitUntil: 'networkidle' })
    await page.goto(`${base}start.html`)
    await page.click('.VPNavBar a:has-text("Algorithms")')
    await page.waitForURL(`${base}algorithms.html`)
    await page.close()
  }
  const lost = await browser.newPage()
  await lost.goto(`${url}index.html`)
  await lost.goto(`${url}no/such/page.html`)
  const home = await lost.getAttribute('a[href]', 'href')
  await lost.close()
  await other.close()
  return [
    [
      wrong.length === 0,
      `${pages.length} pages under two bases: ${wrong.length} errors ${wrong.slice(0, 3).join('; ')}`,
    ],
    [home !== null, `a missing page is answered by 404.html with a way home`],
    ...(await withoutScripts(browser, url)),
  ]
}

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
async function withoutScripts(browser, url) {
  const context = await browser.newContext({ javaScriptEnabled: false })
  const page = await context.newPage()
  await page.goto(`${url}algorithms.html`)
  const [tables, pictures] = [
    await page.locator('.vp-doc table').count(),
    await page.locator('figure.picture svg').count(),
  ]
  const height = await page
    .locator('figure.picture svg')
    .first()
    .evaluate((svg) => svg.getBoundingClientRect().height)
  await page.goto(`${url}playground.html`)
  const needs = (await page.locator('.needs').innerText()).trim()
  const seen = await page.locator('.playground').isVisible()
  await context.close()
  return [
    [
      tables > 5 && pictures >= 8 && height > 20,
      `without scripts the page of algorithms has ${tables} tables and ${pictures} pictures`,
    ],
    [
      needs.includes('scripts') && !seen,
      `without scripts the playground ${seen ? 'shows forms that do nothing' : 'says'}: ${needs.slice(0, 60)}...`,
    ],
  ]
}
