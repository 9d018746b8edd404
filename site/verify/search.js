// Every error code, option and header is among the first three hits of the site's own search, by itself.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { optionsIn } from '../checks.js'

/**
 * @param {import('playwright-core').Browser} browser
 * @param {string} url
 * @returns {Promise<[boolean, string][]>}
 */
export async function verify(browser, url) {
  const MiniSearch = createRequire(resolve('site/package.json'))('minisearch')
  const chunks = 'site/dist/assets/chunks'
  const name = readdirSync(chunks).find((each) => each.startsWith('@localSearchIndex'))
  Object.assign(globalThis, { window: { __base: '/' } })
  const { default: data } = await import(resolve(chunks, name ?? ''))
  const { searchOptions } = (await import('../search-options.js')).SEARCH
  const index = MiniSearch.loadJSON(data, {
    fields: ['title', 'titles', 'text'],
    storeFields: ['title', 'titles'],
    searchOptions,
  })
  const headings = (/** @type {string} */ file, /** @type {RegExp} */ form) =>
    [...readFileSync(file, 'utf8').matchAll(form)].map(([, heading = '']) => heading)
  const terms = {
    'error codes': headings('docs/errors.md', /^### ([A-Z_]+)$/gm),
    options: [...new Set(optionsIn('.'))],
    headers: headings('site/generated/headers.md', /^## (\S+)$/gm),
  }
  /** @type {[boolean, string][]} */
  const lines = []
  for (const [kind, list] of Object.entries(terms)) {
    const lost = list.filter(
      (term) =>
        !index
          .search(term)
          .slice(0, 3)
          .some((/** @type {any} */ hit) => hit.title.replace('?', '') === term),
    )
    lines.push([
      lost.length === 0 && list.length > 5,
      `${list.length} ${kind}, ${lost.length} not in the first three hits ${lost.slice(0, 8).join(' ')}`,
    ])
  }
  const page = await browser.newPage()
  await page.goto(`${url}index.html`, { waitUntil: 'networkidle' })
  await page.keyboard.press('Control+k')
  await page.waitForSelector('.VPLocalSearchBox input')
  await page.keyboard.type('STORE_TIMEOUT')
  await page.waitForSelector('.VPLocalSearchBox .result')
  await page.keyboard.press('Enter')
  await page.waitForURL(/errors\.html#store_timeout$/)
  await page.close()
  lines.push([true, 'by keyboard alone the search leads to errors.html#store_timeout'])
  return lines
}
