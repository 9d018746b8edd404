// The rules of pages: none may lead nowhere, miss a public name, name an option that there is not, or show a figure that no run has
// printed. Each function returns the problems that it found, in words that name the place.
import { readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'
import { filesIn, published } from './pages.js'

/**
 * Links and anchors of the pages that were built.
 * @param {string} folder
 * @returns {string[]}
 */
export function brokenLinks(folder) {
  const pages = new Map(htmlOf(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  const anchors = new Map(
    [...pages].map(([name, html]) => [name, new Set(html.match(/(?<= (?:id|name)=")[^"]+/g))]),
  )
  const problems = []
  for (const [name, html] of pages) {
    for (const [, href = ''] of html.matchAll(/<(?:a|link|img|script)\b[^>]* (?:href|src)="([^"]*)"/g)) {
      const problem = wrongLink(folder, anchors, name, href)
      if (problem) problems.push(`${name}: ${problem}`)
    }
  }
  return [...new Set(problems)]
}

/**
 * @param {string} folder
 * @param {Map<string, Set<string>>} anchors
 * @param {string} from
 * @param {string} href
 */
function wrongLink(folder, anchors, from, href) {
  if (/^(?:https?:|mailto:|data:)/.test(href)) return undefined
  if (href.startsWith('/')) return `${href} fits one base path alone`
  const [path = '', ...rest] = href.split('#')
  const joined = path === '' ? from : posix.join(posix.dirname(from), decodeURI(path))
  const file = joined.replace(/(^|\/)\.?$/, '$1index.html')
  if (!statSync(join(folder, file), { throwIfNoEntry: false })?.isFile()) return `${href} leads nowhere`
  const hash = decodeURIComponent(rest.join('#'))
  if (hash === '' || /^playground[./]/.test(file)) return undefined
  return anchors.get(file)?.has(hash) ? undefined : `${href} leads to no heading`
}

/**
 * Public names that no page of the reference has.
 * @param {string} root
 */
export function missingExports(root) {
  return published(root).flatMap((name) => {
    const pages = textOf(`${root}/docs/api/${name}`, '.md').replaceAll('\\_', '_')
    const heads = new Set([...pages.matchAll(/^#+ (?:[\w ]+: )?([\w$]+)/gm)].map(([, head]) => head))
    const exported = readFileSync(`${root}/packages/${name}/api.md`, 'utf8').matchAll(
      /^export (?:(?:declare |abstract )*(?:class|const|function|interface|type|enum) |\{ (?:\w+ as )?)([\w$]+)/gm,
    )
    const missing = new Set([...exported].map(([, each]) => each).filter((each) => !heads.has(each)))
    return [...missing].map((each) => `@sluice/${name} exports ${each}, which is in no page of docs/api`)
  })
}

/**
 * Options in tables of the pages that no package has.
 * @param {string} root
 * @param {readonly string[]} files
 */
export function unknownOptions(root, files) {
  const known = new Set(optionsIn(root))
  const flags = textOf(`${root}/packages/cli/src`, '.ts')
  /** @param {string} name */
  const exists = (name) =>
    name.startsWith('--') ? flags.includes(name) || flags.includes(`'${name.slice(2)}`) : known.has(name)
  const written = files.filter((file) => !/^docs\/(?:api|migrate)\//.test(file))
  return written.flatMap((file) => {
    const tables = readFileSync(`${root}/${file}`, 'utf8').matchAll(/^\| option\b.*\n\|.*\n((?:\|.*\n)+)/gm)
    const cells = [...tables].flatMap(([, rows = '']) => rows.match(/^\|(?:\\\||[^|])*/gm) ?? [])
    const names = cells.flatMap((cell) =>
      [...cell.matchAll(/`([^` :(.]+)[^`]*`/g)].map(([, name = '']) => name),
    )
    return names.filter((name) => !exists(name)).map((name) => `${file}: there is no option ${name}`)
  })
}

/**
 * Every option of every package, by the headings of the reference.
 * @param {string} root
 */
export function optionsIn(root) {
  return [...textOf(`${root}/docs/api`, 'Options.md').matchAll(/^### (\w+)/gm)].map(([, name = '']) => name)
}

/**
 * The files of a folder with an ending, as one text.
 * @param {string} folder
 * @param {string} ending
 */
function textOf(folder, ending) {
  return filesIn(folder, ending)
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
}

/**
 * Pages of measurements that are not what their figures print.
 * @param {string} root
 */
export async function staleFigures(root) {
  // By a name that the compiler does not follow: the parts measure packages of others.
  const { stalePages } = await import(String('../packages/bench/src/parts.js'))
  return stalePages(root).map(
    (/** @type {string} */ place) => `${place} is not what npm run bench -- pages prints of its figures`,
  )
}

/**
 * Pages that are cut out of the folder, as paths.
 * @param {string} folder
 */
export function htmlOf(folder) {
  return filesIn(folder, '.html')
    .filter((name) => name !== '404.html')
    .sort()
}
