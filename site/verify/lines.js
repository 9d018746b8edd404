// The size of the site: lines that are neither blank nor comment alone. Styles and tests are
// not in its bound, which is what it takes (docs/decisions/0021-the-site.md).
import { readFileSync } from 'node:fs'
import { filesIn } from '../pages.js'

const MOST = 3340
const OTHERS = /^(?:node_modules|dist|generated|public|screenshots)\/|\.code-|test\//

/** @param {import('../verify.js').Part} part */
export async function verify({ check }) {
  const files = ['.js', '.ts', '.vue'].flatMap((ending) => filesIn('site', ending))
  const [site = 0, verifying = 0] = [false, true].map((isVerifying) =>
    files
      .filter((name) => !OTHERS.test(name) && name.includes('verify') === isVerifying)
      .reduce((sum, name) => sum + codeLines(readFileSync(`site/${name}`, 'utf8')), 0),
  )
  const all = site + verifying
  check(all <= MOST, `${all} lines of code (.ts, .js, .vue), ${verifying} of them verify; at most ${MOST}`)
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
