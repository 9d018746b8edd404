// One folder under any base path, every page of it without a failed request, a refused script or an error; and without scripts.
import { htmlOf } from '../checks.js'
import { comesTrue, openPage, visit } from './page.js'
import { serve } from './serve.js'

/** Pages beside those at the top. */
const SOME =
  /^(?:api\/core\/(?:index|README|interfaces\/LimiterOptions)|(?:migrate|recipes|packages)\/|decisions\/index)/

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const { url, check } = part
  const pages = htmlOf('site/dist').filter((name) => !name.includes('/') || SOME.test(name))
  const other = await serve('site/dist', '/')
  /** @type {string[]} */
  const wrong = []
  const page = await openPage(part)
  page.on('console', (message) => {
    if (message.type() === 'error') wrong.push(`${page.url()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => void wrong.push(`${page.url()}: ${error.message}`))
  page.on('request', (request) => {
    const isOwn = [url, other.url].some((each) => request.url().startsWith(new URL(each).origin))
    if (!isOwn && !/^(?:data|blob):/.test(request.url())) wrong.push(`${page.url()} asks ${request.url()}`)
  })
  for (const base of [url, other.url]) {
    for (const name of base === url ? pages : pages.slice(0, 5)) await visit(page, base + name)
    await page.goto(`${base}start.html`)
    await page.click('.VPNavBar a:has-text("Algorithms")')
    await page.waitForURL(`${base}algorithms.html`)
  }
  check(wrong.length === 0, `${pages.length} pages, ${wrong.length} errors ${wrong.slice(0, 3).join('; ')}`)
  await visit(page, `${url}index.html`)
  await visit(page, `${url}no/such/page.html`)
  const home = await page.locator('#home').evaluate((link) => Object(link).href)
  check(home === url, `a missing page is answered by 404.html with a way home, ${home}`)
  await page.close()
  other.close()
  await tabsThatStay(part)
  await withoutScripts(part)
}

/**
 * A page that was left writes no address any more, and a tab that is older than the site finds its pages.
 * @param {import('../verify.js').Part} part
 */
async function tabsThatStay(part) {
  const page = await openPage(part)
  await visit(page, `${part.url}playground.html`)
  await page.getByText('Compare with other limits').click()
  await page.click('.VPNavBar a:has-text("Algorithms")')
  await page.waitForTimeout(500)
  const path = page.url().replace(part.url, '')
  part.check(path === 'algorithms.html', `the playground leaves the next page its address: ${path}`)
  await page.route('**/assets/start.md.*.js', (route) => route.fulfill({ status: 404 }), { times: 1 })
  await page.click('.VPNavBar a:has-text("Start")')
  const isShown = () => document.querySelector('h1')?.innerText.startsWith('Sluice') === true
  part.check(await comesTrue(page, isShown), 'a page whose script is gone by now is loaded anew')
  await page.close()
}

/** @param {import('../verify.js').Part} part */
async function withoutScripts({ browser, url, check }) {
  const page = await browser.newPage({ javaScriptEnabled: false })
  await page.goto(`${url}algorithms.html`)
  const tables = await page.locator('.vp-doc table').count()
  const pictures = page.locator('figure.picture svg')
  const { height = 0 } = (await pictures.first().boundingBox()) ?? {}
  const count = await pictures.count()
  check(tables > 5 && count >= 8 && height > 20, `without scripts: ${tables} tables, ${count} pictures`)
  await page.goto(`${url}playground.html`)
  const needs = (await page.locator('.needs').innerText()).trim()
  const seen = await page.locator('.playground').isVisible()
  check(needs.includes('scripts') && !seen, `without scripts the playground says: ${needs.slice(0, 60)}`)
  await page.close()
}
