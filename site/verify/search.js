// What people type leads to what they need: every error code, option and header, the options of other packages, and questions in the
// words of readers are among the first three hits of the site's own search.
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
  /** Whether a page is among the first three hits. */
  const leads = (/** @type {string} */ query, /** @type {string} */ path) =>
    index
      .search(query)
      .slice(0, 3)
      .some((/** @type {any} */ { id }) => id.includes(path))
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
  const asked = Object.entries(QUERIES).filter(([query, path]) => !leads(query, path))
  lines.push([
    asked.length === 0,
    `${Object.keys(QUERIES).length} questions, ${asked.length} lost: ${asked.map(([query]) => query).join(', ')}`,
  ])
  const theirs = [...optionsOfOthers()]
  const away = theirs.filter((name) => !leads(name, 'migrat'))
  lines.push([
    away.length === 0 && theirs.length > 50,
    `${theirs.length} options of other packages, ${away.length} do not lead to a page about coming over ${away.slice(0, 8).join(' ')}`,
  ])
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

/** What newcomers and operators ask, and the page that answers. */
const QUERIES = {
  'redis down': '/outages.html',
  'next.js': '/anywhere.html',
  'deny list': '/http.html#allowed-and-denied-callers',
  ban: 'bans',
  lambda: '/anywhere.html',
  cloudflare: '/recipes/edge.html',
  'why refused': '/how-do-i.html#find-out-why-everybody-is-limited',
  nginx: '/http.html#behind-a-gateway',
  'by ip': '/http.html#keys',
  whitelist: '/http.html#allowed-and-denied-callers',
  'dry run': '/how-do-i.html#try-a-limit',
  unblock: '/how-do-i.html#unblock',
  'monthly quota': '/algorithms.html#calendarwindow',
  'which algorithm': '/algorithms.html#how-to-choose',
  'fake timers': '/testing.html',
  prometheus: '/metrics.html',
  postgres: '/postgres.html',
  'tokens per minute': '/recipes/llm-budgets.html',
  websocket: '/packages/hono.html#websocket',
  graphql: '/recipes/graphql-cost.html',
  concurrency: '/outbound-queue.html',
  openai: '/outbound-clients.html',
  login: '/recipes/logins.html',
  dynamodb: '/stores.html',
}

/** Names that no option here has, at the beginning of the rows in which pages compare options of other packages. */
function optionsOfOthers() {
  const ours = new Set([...optionsIn('.'), 'rateLimit']) // which is what adapters export
  const names = new Set()
  for (const file of readdirSync('docs/migrate')) {
    const rows = readFileSync(`docs/migrate/${file}`, 'utf8').match(/^\| `[^|]*(?=\|)/gm) ?? []
    for (const row of rows)
      for (const [, name = ''] of row.matchAll(/`([a-z]+[A-Z]\w*)(?=[`:(])/g))
        if (!ours.has(name)) names.add(name)
  }
  return names
}
