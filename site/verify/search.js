// What people type leads to what they need: every error code, option and header, the options of other packages, and questions in the
// words of readers are among the first three hits of the site's own search.
import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { optionsIn } from '../checks.js'
import { placeOf } from '../pages.js'
import { ranked, SEARCH, WORDS } from '../search-options.js'
import { openPage, visit } from './page.js'

/** @typedef {{ id: string, title: string }} Hit */
/** @typedef {Hit & { score: number }} Scored */

/** @param {import('../verify.js').Part} part */
export async function verify(part) {
  const { url, check } = part
  const first = await searcher()
  /**
   * @template Wanted
   * @param {string} what @param {Iterable<Wanted>} wanted @param {(each: Wanted) => boolean | undefined} isFound
   */
  const all = (what, wanted, isFound, least = 5) => {
    const list = [...wanted]
    const lost = list.filter((each) => !isFound(each))
    const which = lost.slice(0, 8).join('; ')
    check(lost.length === 0 && list.length > least, `${list.length} ${what}, ${lost.length} lost ${which}`)
  }
  const headings = (/** @type {string} */ file, /** @type {RegExp} */ form) =>
    [...readFileSync(file, 'utf8').matchAll(form)].map(([, heading = '']) => heading)
  const isTitle = (/** @type {string} */ term) =>
    first(term).some(({ title }) => title.replace('?', '') === term)
  const leads = (/** @type {string} */ query, /** @type {string} */ path) =>
    first(query).some(({ id }) => id.includes(path))
  all('error codes', headings('docs/errors.md', /^### ([A-Z_]+)$/gm), isTitle)
  all('options', new Set(optionsIn('.')), isTitle)
  all('headers', headings('site/generated/headers.md', /^## (\S+)$/gm), isTitle)
  const asked = [...Object.entries(FOUND_BY_ITSELF), ...wordsOfReaders()]
  all('questions', asked, ([query, path]) => leads(query, path))
  all('options of others lead to coming over', optionsOfOthers(), (name) => leads(name, 'migrat'), 50)
  all('words lead to guides first', GUIDES, (word) => !first(word)[0]?.id.includes('/api/'))

  const page = await openPage(part)
  /** @type {string[]} */
  const errors = []
  page.on('console', (message) => void (message.type() === 'error' && errors.push(message.text())))
  await visit(page, `${url}index.html`)
  await page.keyboard.press('Control+k')
  await page.waitForSelector('.VPLocalSearchBox input')
  await page.keyboard.type('semaphore')
  await page.waitForSelector('.VPLocalSearchBox .excerpt')
  const href = (await page.locator('.result').first().getAttribute('href')) ?? ''
  const excerpt = await page.locator('.result .excerpt').first().innerText()
  check(!href.includes('/api/') && excerpt.length > 20, `the search shows ${href}: ${excerpt.slice(0, 40)}`)
  await page.keyboard.press('Control+a')
  await page.keyboard.type('simulator')
  await page.waitForSelector('.result[href$="playground.html"]')
  await page.keyboard.press('Control+a')
  await page.keyboard.type('STORE_TIMEOUT')
  await page.waitForSelector('.result[href$="#store_timeout"].selected')
  await page.keyboard.press('Enter')
  await page.waitForURL(/errors\.html#store_timeout$/)
  await page.close()
  check(
    errors.length === 0,
    `the search leads to a section by keyboard alone, ${errors.length} errors ${errors.join()}`,
  )
}

/**
 * The first three hits of the search of the site, as it is built.
 * @returns {Promise<(query: string) => Hit[]>}
 */
async function searcher() {
  const MiniSearch = createRequire(resolve('site/package.json'))('minisearch')
  const chunks = 'site/dist/assets/chunks'
  const name = readdirSync(chunks).find((each) => each.startsWith('@localSearchIndex'))
  Object.assign(globalThis, { window: { __base: '/' } })
  const { default: data } = await import(resolve(chunks, name ?? ''))
  const fields = { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] }
  const index = MiniSearch.loadJSON(data, { ...fields, searchOptions: SEARCH.searchOptions })
  return (query) => ranked(/** @type {Scored[]} */ (/** @type {unknown} */ (index.search(query)))).slice(0, 3)
}

/** What newcomers and operators ask, and the part of an address that answers: by its own headings. */
const FOUND_BY_ITSELF = {
  playground: '/playground.html',
  'a log': '/log.html',
  ban: '#ban-one-caller',
  postgres: '/postgres.html',
  websocket: '/packages/hono.html#websocket',
  graphql: '/recipes/graphql-cost.html',
  openai: '/outbound-clients.html',
  login: '/recipes/logins.html',
}

/** The questions whose words the headings are given (search-options.js), each with its section. @returns {[string, string][]} */
function wordsOfReaders() {
  return Object.entries(WORDS).flatMap(([section, words]) => {
    const [file = '', anchor = ''] = section.split(/(?=#)/)
    const address = `/${placeOf(file).replace(/\.md$/, '.html').replace('index.html', '')}${anchor}`
    return words.split(', ').map((query) => /** @type {[string, string]} */ ([query, address]))
  })
}

/** Words that lead to pages about Sluice, whatever other packages have of that name. */
const GUIDES =
  'limiter store policies semaphore decision limit window cost headers penalty cluster retry'.split(' ')

/** Names that no option here has, of the list of options of other packages. */
function optionsOfOthers() {
  const list = readFileSync('site/dist/migrate/index.html', 'utf8')
  const names = [...list.matchAll(/ id="option-(\w+)"/g)].map(([, name = '']) => name)
  return names.filter((name) => name !== 'rateLimit') // which is what adapters export
}
