// The pages of the site: which files of the repository they are, and where each lies on the site.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { ORDER, UNLISTED } from './order.js'

/** @typedef {{ file: string, path: string, title: string }} Page A file of the repository, and its path on the site. */

/** Folders whose Markdown is on the site. */
const FOLDERS = ['docs', 'site/pages', 'site/generated']

/**
 * Every file that is a page.
 * @param {string} root
 */
export function filesOf(root) {
  const inside = FOLDERS.filter((folder) => existsSync(join(root, folder))).flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  const packages = readdirSync(join(root, 'packages'))
    .filter((name) => isPublic(join(root, 'packages', name)))
    .map((name) => `packages/${name}/README.md`)
  return [...inside, ...packages, 'README.md', 'CHANGELOG.md']
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => file.endsWith('.md') && !/\/(?:test|node_modules|\.\w+)\//.test(file))
    .sort()
}

/** @param {string} folder */
function isPublic(folder) {
  const manifest = join(folder, 'package.json')
  return existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).private !== true
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
  const placed = new Set()
  const parts = ORDER.map(({ title, pages }) => ({
    title,
    pages: pages.flatMap((pattern) =>
      matching(files, pattern).filter((file) => !placed.has(file) && placed.add(file)),
    ),
  }))
  const unlisted = UNLISTED.flatMap((pattern) => matching(files, pattern))
  const lost = files.filter((file) => !placed.has(file) && !unlisted.includes(file))
  if (lost.length > 0) throw new Error(`no place in site/order.js: ${lost.join(', ')}`)
  return parts.map(({ title, pages }) => ({
    title,
    pages: pages.map((file) => ({ file, path: placeOf(file), title: titleOf(`${root}/${file}`) })),
  }))
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
 * @param {string} root
 * @param {string} from The file that has the link.
 * @param {string} href
 * @param {string} [repository]
 */
export function addressOf(root, from, href, repository = '') {
  const [path = '', hash] = href.split('#')
  const anchor = hash === undefined ? '' : `#${hash}`
  const file = path === '' ? from : posix.join(posix.dirname(from), decodeURI(path)).replace(/\/$/, '')
  const recipe = file.replace(/^docs\/recipes\/([\w-]+)\.ts$/, 'site/generated/recipes/$1.md')
  const page = [file, `${file}/README.md`, recipe].find((each) => pagesOf(root).has(each))
  if (page) return `/${placeOf(page).replace(/\.md$/, '.html')}${anchor}`
  return repository && `${repository}/blob/main/${file}${anchor}`
}

/** @type {Map<string, Set<string>>} */
const known = new Map()

/** @param {string} root */
function pagesOf(root) {
  const files = known.get(root) ?? new Set(filesOf(root))
  known.set(root, files)
  return files
}

/**
 * What of the site needs an address of its own, or that of the repository, which package.json of the root has or leaves empty.
 * @param {{ repository?: string, homepage?: string }} manifest
 */
export function addressed({ repository, homepage }) {
  const image = homepage ? `${homepage}/social.png` : 'social.png'
  const socialLinks = repository ? [{ icon: /** @type {const} */ ('github'), link: repository }] : undefined
  return { image, socialLinks, ...(homepage && { sitemap: { hostname: `${homepage}/` } }) }
}
