// The pages of the site: which files of the repository they are, and where each lies on the site.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { ORDER, UNLISTED } from './order.js'

/** @typedef {{ path: string, title: string }} Page */

/** Folders whose Markdown is on the site. */
const FOLDERS = ['docs', 'site/pages', 'site/generated']

/**
 * Every file that is a page.
 * @param {string} root
 */
export function filesOf(root) {
  const inside = FOLDERS.flatMap((folder) =>
    filesIn(join(root, folder), '.md').map((name) => `${folder}/${name}`),
  )
  const packages = published(root).map((name) => `packages/${name}/README.md`)
  const files = [...inside, ...packages, 'README.md', 'CHANGELOG.md']
  return files.filter((file) => !/\/(?:test|node_modules|\.\w+)\//.test(file)).sort()
}

/**
 * The names of a folder's files with an ending, of all depths.
 * @param {string} folder
 * @param {string} ending
 */
export function filesIn(folder, ending) {
  const names = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
  return names.map((name) => name.replaceAll('\\', '/')).filter((name) => name.endsWith(ending))
}

/**
 * The folders of the packages that have a public surface.
 * @param {string} root
 */
export function published(root) {
  const names = readdirSync(`${root}/packages`)
  return names.filter((name) => existsSync(`${root}/packages/${name}/api.md`))
}

/**
 * Where a file lies on the site, as Markdown: `docs/migrate/README.md` is `migrate/index.md`.
 * @param {string} file
 */
export function placeOf(file) {
  if (file === 'README.md') return 'start.md'
  if (file === 'CHANGELOG.md') return 'changelog.md'
  if (file === 'docs/README.md') return 'pages.md'
  const [, name] = /^packages\/([^/]+)\/README\.md$/.exec(file) ?? []
  if (name) return `packages/${name}.md`
  return file
    .replace(/^(?:docs|site\/pages|site\/generated)\//, '')
    .replace(/(^|\/)README\.md$/, '$1index.md')
}

/**
 * The navigation: titles of parts with their pages.
 * @param {string} root
 * @returns {{ title: string, pages: Page[] }[]}
 * @throws {Error} naming each page that has no place, and each place that is there twice.
 */
export function navigation(root) {
  const files = filesOf(root)
  const placed = new Set(UNLISTED.flatMap((pattern) => matching(files, pattern)))
  const parts = ORDER.map(({ title, pages }) => ({
    title,
    pages: pages
      .flatMap((pattern) => matching(files, pattern).filter((file) => !placed.has(file) && placed.add(file)))
      .map((file) => ({ path: placeOf(file), title: titleOf(`${root}/${file}`) })),
  }))
  const lost = files.filter((file) => !placed.has(file))
  if (lost.length > 0) throw new Error(`no place in site/order.js: ${lost.join(', ')}`)
  return parts
}

/**
 * @param {readonly string[]} files
 * @param {string} pattern
 */
function matching(files, pattern) {
  return files.filter((file) =>
    pattern.endsWith('/*') ? file.startsWith(pattern.slice(0, -1)) : file === pattern,
  )
}

/**
 * The first heading, without marks.
 * @param {string} file
 */
export function titleOf(file) {
  if (/(?:^|\/)README\.md$/.test(file) && !/\/(?:docs|packages)\//.test(file)) return 'First steps'
  const text = readFileSync(file, 'utf8')
  const [, title] = /^title: (.+)$/m.exec(text) ?? /^# (.+)$/m.exec(text) ?? []
  if (!title) throw new Error(`${file} has no heading`)
  return title.replaceAll(/[`*]|\[|\]\([^)]*\)/g, '').replace(/^Decision \d+: /, '')
}

/**
 * Where a link of a page leads: a path of the site, an address of the repository for a file that is no page, or '' while the
 * repository has none.
 * @param {readonly string[]} files Those that are pages.
 * @param {string} from The file that has the link.
 * @param {string} href
 * @param {string} [repository]
 */
export function addressOf(files, from, href, repository = '') {
  const [path = '', anchor = ''] = href.split(/(?=#)/)
  const file = posix.join(posix.dirname(from), decodeURI(path)).replace(/\/$/, '')
  const recipe = file.replace(/^docs\/recipes\/([\w-]+)\.ts$/, 'site/generated/recipes/$1.md')
  const page = [file, `${file}/README.md`, recipe].find((each) => files.includes(each))
  if (page) return `/${placeOf(page).replace(/\.md$/, '.html')}${anchor}`
  return repository && `${repository}/blob/main/${file}${anchor}`
}

/**
 * The parts of the site that need its own address or that of the repository, which package.json of the root has or leaves empty.
 * @param {{ repository?: string, homepage?: string }} manifest
 */
export function addressed({ repository, homepage }) {
  const image = homepage ? `${homepage}/social.png` : 'social.png'
  const socialLinks = repository ? [{ icon: /** @type {const} */ ('github'), link: repository }] : undefined
  return { image, socialLinks, ...(homepage && { sitemap: { hostname: `${homepage}/` } }) }
}
