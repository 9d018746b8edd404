// The pages of the site: which files of the repository they are, and where each lies on the site.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { ORDER, UNLISTED } from './order.js'

/** @typedef {{ file: string, path: string, title: string }} Page A file of the repository, and its path on the site. */

/** Folders whose Markdown is on the site. */
const FOLDERS = ['docs', 'site/pages', 'site/generated']

/**
 * Every file that is a page.
 * @param {string} root
 */
export function filesOf(root) {
  const inside = FOLDERS.filter((folder) => existsSync(`${root}/${folder}`)).flatMap((folder) =>
    readdirSync(`${root}/${folder}`, { recursive: true, encoding: 'utf8' }).map(
      (name) => `${folder}/${name.replaceAll('\\', '/')}`,
    ),
  )
  const packages = readdirSync(`${root}/packages`)
    .filter((name) => isPublic(`${root}/packages/${name}/package.json`))
    .map((name) => `packages/${name}/README.md`)
    .filter((file) => existsSync(`${root}/${file}`))
  return [...inside, ...packages, 'README.md', 'CHANGELOG.md']
    .filter((file) => file.endsWith('.md') && !/\/(?:test|node_modules|\.\w+)\//.test(file))
    .sort()
}

/** @param {string} manifest */
function isPublic(manifest) {
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
 * Where a link of a page leads: a path of the site, or a file of the repository that is not on it.
 * @param {string} root
 * @param {string} from The file that has the link.
 * @param {string} href
 * @returns {{ path: string } | { file: string }}
 */
export function targetOf(root, from, href) {
  const [path = '', hash] = href.split('#')
  const anchor = hash === undefined ? '' : `#${hash}`
  const file =
    path === '' ? from : posix.normalize(posix.join(posix.dirname(from), decodeURI(path))).replace(/\/$/, '')
  const readme = `${file}/README.md`
  const page = file.endsWith('.md') ? file : existsSync(`${root}/${readme}`) ? readme : recipeOf(file)
  if (page && isPage(root, page)) return { path: `/${placeOf(page).replace(/\.md$/, '.html')}${anchor}` }
  return { file: `${file}${anchor}` }
}

/** @param {string} file */
function recipeOf(file) {
  const [, name] = /^docs\/recipes\/([\w-]+)\.ts$/.exec(file) ?? []
  return name && `site/generated/recipes/${name}.md`
}

/** @type {Map<string, Set<string>>} */
const known = new Map()

/**
 * @param {string} root
 * @param {string} file
 */
function isPage(root, file) {
  const files = known.get(root) ?? new Set(filesOf(root))
  known.set(root, files)
  return files.has(file)
}
