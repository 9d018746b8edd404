// The size of the site: lines that are neither blank nor comment alone. Styles and tests are
// counted apart, each by itself.
import { readdirSync, readFileSync, statSync } from 'node:fs'

const MOST = 3200
const APART = /** @type {[string, RegExp][]} */ ([
  ['tests', /\/test\//],
  ['what verifies', /verify/],
  ['styles', /\.css$/],
])

/** @returns {Promise<[boolean, string][]>} */
export async function verify() {
  const lines = new Map()
  for (const name of readdirSync('site', { recursive: true, encoding: 'utf8' })) {
    const file = `site/${name.replaceAll('\\', '/')}`
    if (/\/(?:node_modules|dist|generated|public|screenshots|\.code-\w+)\//.test(file)) continue
    if (!/\.(?:js|ts|vue|css)$/.test(file) || !statSync(file).isFile()) continue
    const part = APART.find(([, form]) => form.test(file))?.[0] ?? 'the site'
    lines.set(part, (lines.get(part) ?? 0) + codeLines(readFileSync(file, 'utf8')))
  }
  const apart = APART.map(([part]) => `${part} ${lines.get(part)}`).join(', ')
  const all = lines.get('the site') + lines.get('what verifies')
  return [
    [
      all <= MOST,
      `${all} lines of code with what verifies (.ts, .js, .vue), at most ${MOST}; counted: ${apart}`,
    ],
  ]
}

/**
 * A comment that shares a line with code is counted with it, also its other lines.
 * @param {string} text
 */
export function codeLines(text) {
  const block = String.raw`/\*(?:(?!\*/)[^])*\*/|<!--(?:(?!-->)[^])*-->`
  const code = text.replaceAll(new RegExp(String.raw`^\s*(?:${block}|//.*)\s*$`, 'gm'), '')
  return code.split('\n').filter((line) => line.trim() !== '').length
}
