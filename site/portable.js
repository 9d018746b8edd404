// One folder for any base path: VitePress builds for a base that nobody has, and every mention of it is made relative. In HTML
// and CSS by the depth of the file; in scripts by `__base`, which each page sets before they run.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { parse } from 'acorn'

export const BASE = '/__sluice__/'

/** What pages may load, and where they may connect to: nowhere. Workers of blobs inherit it. */
const POLICY =
  "default-src 'self'; connect-src 'none'; worker-src blob:; img-src 'self' data:; style-src 'self' 'unsafe-inline'"

/** Scripts that are written into a page. */
const INLINE = /<script(?![^>]* src=)[^>]*>([^]*?)<\/script>/g

/** @param {string} folder */
export function makePortable(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    const change = name.endsWith('.html')
      ? portablePage
      : name.endsWith('.js')
        ? portableScript
        : name.endsWith('.css')
          ? portableStyle
          : undefined
    if (!change) continue
    const text = readFileSync(path, 'utf8')
    const changed = change(text, name.replaceAll('\\', '/'))
    if (changed !== text) writeFileSync(path, changed)
  }
}

/**
 * @param {string} html
 * @param {string} name
 */
export function portablePage(html, name) {
  const up = '../'.repeat(name.split('/').length - 1) || './'
  // A host may serve 404.html at any address: it knows the base of the last page that was seen.
  const own = `new URL('${up}',location.href).pathname`
  const known = `(function(){try{return sessionStorage.base}catch{}})()||'/'`
  const base = name === '404.html' ? known : own
  const keep = name === '404.html' ? '' : 'try{sessionStorage.base=__base}catch{}'
  const text = html
    .replace('<head>', `<head>\n    <script>window.__base=${base};${keep}</script>`)
    .replaceAll(BASE, name === '404.html' ? '/' : up)
  return withPolicy(text)
}

/**
 * The policy stands before the first script, with the digest of each script that is written into the page.
 * @param {string} html
 */
function withPolicy(html) {
  const inline = [...html.matchAll(INLINE)].map(([, code = '']) => code)
  const digests = [...new Set(inline)].map(
    (code) => `'sha256-${createHash('sha256').update(code).digest('base64')}'`,
  )
  const content = `${POLICY}; script-src 'self' ${digests.join(' ')}`
  return html.replace(
    '<head>',
    `<head>\n    <meta http-equiv="Content-Security-Policy" content="${content}">`,
  )
}

/**
 * Each text that holds the base becomes an expression that puts in what the page knows.
 * @param {string} code
 */
export function portableScript(code) {
  if (!code.includes(BASE)) return code
  /** @type {{ start: number, end: number, text: string }[]} */
  const changes = []
  walk(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => {
    const { type, start, end, value } = node
    if (type === 'Literal' && typeof value === 'string' && value.includes(BASE)) {
      changes.push({ start, end, text: `(${code.slice(start, end)}.replaceAll("${BASE}",window.__base))` })
    } else if (type === 'TemplateElement' && value.raw.includes(BASE)) {
      changes.push({ start, end, text: value.raw.replaceAll(BASE, '${window.__base}') })
    }
  })
  for (const { start, end, text } of changes.sort((one, other) => other.start - one.start)) {
    code = code.slice(0, start) + text + code.slice(end)
  }
  return code
}

/**
 * @param {any} node
 * @param {(node: any) => void} visit
 */
function walk(node, visit) {
  if (Array.isArray(node)) node.forEach((each) => walk(each, visit))
  else if (typeof node?.type === 'string') {
    visit(node)
    for (const each of Object.values(node)) if (typeof each === 'object' && each !== null) walk(each, visit)
  }
}

/**
 * @param {string} css
 * @param {string} name
 */
function portableStyle(css, name) {
  return css.replaceAll(BASE, '../'.repeat(name.split('/').length - 1) || './')
}
