// Five readers, each from the first page, by clicks alone, to a snippet that the tests run.
import { runs, snippetsOf } from '../../docs/test/snippets.ts'
import { placeOf } from '../pages.js'
import { openPage, visit } from './page.js'

/** The aim of each reader, and the links that are clicked. */
const PATHS = Object.entries({
  'a first protected route': ['a:has-text("Protect a first route")'],
  'coming from another library': [
    'a:has-text("Come from another library")',
    'a[href$="migrate/rate-limiter-flexible.html#options"]',
  ],
  'a 429 explained': ['a:has-text("What a 429 says")'],
  'Redis is down': ['a:has-text("When Redis is down")'],
  'choosing an algorithm': ['a:has-text("Which algorithm")'],
})

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const run = snippetsOf('.').filter((each) => runs(each) || /\blisten\(|\bserve\(/.test(each.code))
  const places = run.map(({ name }) => placeOf(name.replace(/:\d+$/, '')).replace(/md$/, 'html'))
  const page = await openPage(part)
  for (const [reader, clicks] of PATHS) {
    await visit(page, `${part.url}index.html`)
    for (const selector of clicks) {
      await page.locator(`.vp-doc ${selector}`).first().click()
      await page.waitForLoadState('networkidle')
    }
    await page.waitForSelector('.vp-doc h1')
    const path = page.url().replace(part.url, '').replace(/#.*/, '')
    const found = places.filter((place) => place === path).length
    const leads = found > 0 && clicks.length <= 3
    part.check(leads, `${reader}: ${clicks.length} clicks to ${path}, ${found} snippets that are run`)
  }
  await page.close()
}
