// The size of the site: lines that are neither blank nor comment alone. Styles and tests are
// not in its bound.
import { readFileSync } from 'node:fs'
import { filesIn } from '../pages.js'

const MOST = 3200
const OTHERS = /^(?:node_modules|dist|generated|public|screenshots)\/|\.code-/

/** @param {import('../verify.js').Part} part */
export async function verify({ check }) {
  const counted = { 'the site': 0, tests: 0, 'what verifies': 0, styles: 0 }
  for (const ending of ['.js', '.ts', '.vue', '.css'])
    for (const name of filesIn('site', ending).filter((each) => !OTHERS.test(each)))
      counted[partOf(name)] += codeLines(readFileSync(`site/${name}`, 'utf8'))
  const all = counted['the site'] + counted['what verifies']
  const each = Object.entries(counted).map(([part, lines]) => `${part} ${lines}`)
  const bound = `${all} lines of code with what verifies (.ts, .js, .vue), at most ${MOST}`
  check(all <= MOST, `${bound}; counted: ${each.join(', ')}`)
}

/** @param {string} name */
function partOf(name) {
  if (name.includes('test/')) return 'tests'
  if (name.includes('verify')) return 'what verifies'
  return name.endsWith('.css') ? 'styles' : 'the site'
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
