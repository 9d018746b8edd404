import { codeLines } from '../code-lines.js'

describe('a line of code', () => {
  it.each([
    ['stands between comments of their own', '/** a */\none()\n/*\n * b\n */\n\n<!-- c -->\n// d\n', 1],
    ['may begin with a comment', '/** @type {any} */ (one).two()\nthree()\n/** a */\n', 2],
    ['may end with a comment', 'one() // a\ntwo() /* b */\n<b/> <!-- c\n-->\n', 4],
    ['ends a comment of several lines', '/* a\n */ one()\ntwo()\n/* b */\n', 3],
  ])('%s', (_, text, lines) => {
    expect(codeLines(text)).toBe(lines)
  })
})
