// One folder for any base path: VitePress builds for a base that nobody has, and every mention of it is made relative. In HTML
// and CSS by the depth of the file; in scripts by `__base`, which each page sets before they run.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { extname, join } from 'node:path'
import { tokenizer, tokTypes } from 'acorn'

export const BASE = '/__sluice__/'

/** What pages may load, and where they may connect to: nowhere. Workers of blobs inherit it. */
const POLICY =
  "default-src 'self'; connect-src 'none'; worker-src blob:; img-src 'self' data:; style-src 'self' 'unsafe-inline'"

/** Scripts that are written into a page. */
const INLINE = /<script(?![^>]* src=)[^>]*>([^]*?)<\/script>/g

/** @type {Record<string, (text: string, name: string) => string>} */
const CHANGES = { '.html': portablePage, '.js': portableScript, '.css': portableStyle }

/** @param {string} folder */
export function makePortable(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    const change = CHANGES[extname(name)]
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
  const script = `window.__base=new URL('${up}',location.href).pathname;try{sessionStorage.base=__base}catch{}`
  return withPolicy(html.replace('<head>', `<head>\n    <script>${script}</script>`).replaceAll(BASE, up))
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
  let [made, done] = ['', 0]
  for (const token of tokenizer(code, { ecmaVersion: 'latest', sourceType: 'module' })) {
    const { type, value, start, end } = /** @type {any} */ (token)
    if (typeof value !== 'string' || !value.includes(BASE)) continue
    const text = code.slice(start, end)
    made += code.slice(done, start)
    made +=
      type === tokTypes.string
        ? `(${text}.replaceAll("${BASE}",window.__base))`
        : text.replaceAll(BASE, '${window.__base}')
    done = end
  }
  return made + code.slice(done)
}

/**
 * @param {string} css
 * @param {string} name
 */
function portableStyle(css, name) {
  return css.replaceAll(BASE, '../'.repeat(name.split('/').length - 1) || './')
}
