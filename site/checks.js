// What no page may do: lead nowhere, miss a public name, name an option that there is not, or show a figure that no run has
// printed. Each function returns the problems that it found, in words that name the place.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join, posix } from 'node:path'

/**
 * Links and anchors of the pages that were built.
 * @param {string} folder
 * @returns {string[]}
 */
export function brokenLinks(folder) {
  const pages = new Map(htmlOf(folder).map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
  const anchors = new Map(
    [...pages].map(([name, html]) => [
      name,
      new Set([...html.matchAll(/ (?:id|name)="([^"]+)"/g)].map(([, id = '']) => id)),
    ]),
  )
  const problems = []
  for (const [name, html] of pages) {
    for (const [, href = ''] of html.matchAll(/<(?:a|link|img|script)\b[^>]* (?:href|src)="([^"]*)"/g)) {
      const problem = wrongLink(folder, anchors, name, decode(href))
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
  if (!existsSync(join(folder, file)) || !statSync(join(folder, file)).isFile())
    return `${href} leads nowhere`
  const hash = decodeURIComponent(rest.join('#'))
  if (hash === '' || file === 'playground.html') return undefined
  return anchors.get(file)?.has(hash) ? undefined : `${href} leads to no heading`
}

/**
 * Public names that no page of the reference has.
 * @param {string} root
 */
export function missingExports(root) {
  return readdirSync(`${root}/packages`)
    .filter((name) => existsSync(`${root}/packages/${name}/api.md`))
    .flatMap((name) => {
      const pages = readdirSync(`${root}/docs/api/${name}`, { recursive: true, encoding: 'utf8' }).filter(
        (page) => page.endsWith('.md'),
      )
      const text = pages.map((page) => readFileSync(`${root}/docs/api/${name}/${page}`, 'utf8')).join('\n')
      const heads = new Set(
        [...text.replaceAll('\\_', '_').matchAll(/^#+ (?:[\w ]+: )?([\w$]+)/gm)].map(([, head]) => head),
      )
      const surface = readFileSync(`${root}/packages/${name}/api.md`, 'utf8')
      const exported = surface.matchAll(
        /^export (?:(?:declare |abstract )*(?:class|const|function|interface|type|enum) ([\w$]+)|\{ (?:\w+ as )?([\w$]+) \})/gm,
      )
      const names = new Set([...exported].map(([, declared, listed]) => declared ?? listed))
      return [...names]
        .filter((each) => !heads.has(each))
        .map((each) => `@sluice/${name} exports ${each}, which is in no page of docs/api`)
    })
}

/**
 * Options in tables of the pages that no package has.
 * @param {string} root
 * @param {readonly string[]} files
 */
export function unknownOptions(root, files) {
  const known = new Set(
    [...readFileSync(`${root}/site/generated/options.md`, 'utf8').matchAll(/^## (\S+)/gm)].map(
      ([, name]) => name,
    ),
  )
  const flags = readdirSync(`${root}/packages/cli/src`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(`${root}/packages/cli/src/${name}`, 'utf8'))
    .join('\n')
  const problems = []
  for (const file of files.filter(
    (each) => !each.startsWith('docs/api/') && !each.startsWith('docs/migrate/'),
  )) {
    const text = readFileSync(`${root}/${file}`, 'utf8')
    for (const [table] of text.matchAll(/^\| option\b[^\n]*\n(?:\|[^\n]*\n)+/gm)) {
      for (const row of table.trim().split('\n').slice(2)) {
        const [first = ''] = row.slice(1).split(/(?<!\\)\|/)
        for (const [, code = ''] of first.matchAll(/`([^`]+)`/g)) {
          const [name = ''] = code.split(/[ :(.]/)
          const exists = name.startsWith('--')
            ? flags.includes(name) || flags.includes(`'${name.slice(2)}`)
            : known.has(name)
          if (!exists) problems.push(`${file}: there is no option ${name}`)
        }
      }
    }
  }
  return problems
}

/**
 * Pages of measurements that are not what their figures print.
 * @param {string} root
 */
export async function staleFigures(root) {
  /** @param {string} name @returns {Promise<any>} */
  const bench = (name) => import(`../packages/bench/src/${name}.js`)
  const { load, pageOf } = await bench('report')
  const modules = await Promise.all(['memory/part', 'redis/part', 'http/part', 'scale/part'].map(bench))
  const parts = modules.flatMap((each) => Object.values(each))
  return parts.flatMap((part) => {
    const written = readFileSync(`${root}/docs/benchmarks/${part.name}.md`, 'utf8')
    const record = load(part.name)
    if (!record) return []
    const printed = `${pageOf(part, record)}\n`.split('\n')
    const at = written.split('\n').findIndex((line, i) => line !== printed[i])
    return at < 0
      ? []
      : [`docs/benchmarks/${part.name}.md:${at + 1} is not what npm run bench -- pages prints of its figures`]
  })
}

/**
 * Pages that are cut out of the folder, as paths.
 * @param {string} folder
 */
export function htmlOf(folder) {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.html') && name !== '404.html')
    .sort()
}

/** @param {string} text */
function decode(text) {
  return text.replaceAll('&amp;', '&').replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
}
