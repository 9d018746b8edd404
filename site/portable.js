// One folder for any base path: VitePress builds for a base that no host has, and every mention of it is made relative. In HTML
// and CSS by the depth of the file; in scripts by `__base`, which each page sets before they run.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { extname, join } from 'node:path'
import { tokenizer, tokTypes } from 'acorn'

export const BASE = '/__sluice__/'

/** The addresses that pages may load, and where they may connect to: nowhere. Workers of blobs inherit it. */
const POLICY =
  "default-src 'self'; connect-src 'none'; worker-src blob:; img-src 'self' data:; style-src 'self' 'unsafe-inline'"

/** Scripts that are written into a page. */
const INLINE = /<script(?![^>]* src=)[^>]*>([^]*?)<\/script>/g

/** @type {Record<string, (text: string, name: string) => string>} */
const CHANGES = {
  '.html': portablePage,
  '.js': portableScript,
  '.css': (css, name) => css.replaceAll(BASE, upFrom(name)),
}

/** @param {string} folder */
export function makePortable(folder) {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    const change = CHANGES[extname(name)]
    if (change) writeFileSync(path, change(readFileSync(path, 'utf8'), name.replaceAll('\\', '/')))
  }
}

/** @param {string} name */
function upFrom(name) {
  return '../'.repeat(name.split('/').length - 1) || './'
}

/**
 * The policy stands before the first script, with the digest of each script that is written into the page.
 * @param {string} html
 * @param {string} name
 */
export function portablePage(html, name) {
  const up = upFrom(name)
  const first = `window.__base=new URL('${up}',location.href).pathname;try{sessionStorage.base=__base}catch{}`
  const page = html.replaceAll(BASE, up)
  const scripts = new Set([first, ...[...page.matchAll(INLINE)].map(([, code = '']) => code)])
  const digests = [...scripts].map((code) => `'sha256-${createHash('sha256').update(code).digest('base64')}'`)
  const content = `${POLICY}; script-src 'self' ${digests.join(' ')}`
  const head = `<head><meta http-equiv="Content-Security-Policy" content="${content}"><script>${first}</script>`
  return page.replace('<head>', head)
}

/**
 * Each text that holds the base becomes an expression that puts in what the page knows.
 * @param {string} code
 */
export function portableScript(code) {
  if (!code.includes(BASE)) return code
  const tokens = /** @type {any[]} */ ([...tokenizer(code, { ecmaVersion: 'latest', sourceType: 'module' })])
  const holding = tokens.filter(({ value }) => typeof value === 'string' && value.includes(BASE))
  return holding.reduceRight((made, { type, start, end }) => {
    const text = code.slice(start, end)
    const asking =
      type === tokTypes.string
        ? `(${text}.replaceAll("${BASE}",window.__base))`
        : text.replaceAll(BASE, '${window.__base}')
    return made.slice(0, start) + asking + made.slice(end)
  }, code)
}
