// Writes a call of `globalThis.journeyEntered` into each function of a module, and a table of the functions at its end.
import { parse } from 'acorn'

/**
 * @typedef {object} SourceFunction
 * @property {string} declaration The top-level declaration that holds it: a class, a function or a constant; '' for none.
 * @property {boolean} isClass Whether that is a class.
 * @property {string} name
 * @property {number} start Where it begins in the module's text, as `position` counts.
 * @property {number} end
 */

/** Beyond the length of any line. */
const LINE = 1e6

/**
 * @typedef {{ type: string, start: number, end: number } & Record<string, unknown>} Node
 */

/** The module with calls and table. @param {string} code @param {string} url */
export function instrumented(code, url) {
  const functions = functionsOf(code)
  const insertions = functions.flatMap(({ body }, i) => {
    const entered = `globalThis.journeyEntered?.(${JSON.stringify(url)},${i})`
    return body.type === 'BlockStatement'
      ? [{ at: body.start + 1, text: `${entered};` }]
      : [
          { at: body.start, text: `(${entered},` },
          { at: body.end, text: ')' },
        ]
  })
  insertions.sort((a, b) => a.at - b.at)
  let text = ''
  let done = 0
  for (const { at, text: inserted } of insertions) {
    text += code.slice(done, at) + inserted
    done = at
  }
  text += code.slice(done)
  /** @param {number} at */
  const moved = (at) => {
    const before = text.slice(
      0,
      insertions.reduce((sum, one) => (one.at <= at ? sum + one.text.length : sum), at),
    )
    const lines = before.split('\n')
    return position(lines.length, (lines.at(-1)?.length ?? 0) + 1)
  }
  const table = functions.map(({ declaration, isClass, name, start, end }) => {
    return { declaration, isClass, name, start: moved(start), end: moved(end) }
  })
  return `${text}\n;globalThis.journeyFunctions?.(${JSON.stringify(url)},${JSON.stringify(table)})`
}

/** A place in a module as one number. @param {number} line From 1 on. @param {number} column From 1 on. */
export function position(line, column) {
  return line * LINE + column
}

/** The functions of a module in its order, each with its body. @param {string} code */
export function functionsOf(code) {
  /** @type {(SourceFunction & { body: Node })[]} */
  const functions = []
  const { body } = /** @type {{ body: Node[] }} */ (
    /** @type {unknown} */ (parse(code, { ecmaVersion: 'latest', sourceType: 'module' }))
  )
  for (const statement of body) {
    const { declaration } = /** @type {{ declaration?: Node }} */ (statement)
    const declared = declaration ?? statement
    const { declarations = [declared] } = /** @type {{ declarations?: Node[] }} */ (declared)
    for (const one of declarations)
      visit(one, { declaration: nameOf(one), isClass: isClass(one), name: '' }, functions)
  }
  return functions
}

/**
 * @param {Node} node
 * @param {Pick<SourceFunction, 'declaration' | 'isClass' | 'name'>} within The name is that of what holds the node.
 * @param {(SourceFunction & { body: Node })[]} functions
 */
function visit(node, within, functions) {
  const own = { ...within, name: nameOf(node) || within.name }
  if (node.type.includes('Function')) {
    const body = /** @type {Node} */ (node['body'])
    functions.push({ ...own, start: node.start, end: node.end, body })
  }
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child?.type === 'string') visit(child, own, functions)
}

/** A class, also as the value of a constant. @param {Node} node */
function isClass(node) {
  const { init } = /** @type {{ init?: Node | null }} */ (node)
  return (init ?? node).type.startsWith('Class')
}

/** @param {Node} node */
function nameOf(node) {
  const { id, key } = /** @type {{ id?: { name?: string }, key?: { type: string, name?: string } }} */ (node)
  if (key?.name === undefined) return id?.name ?? ''
  return key.type === 'PrivateIdentifier' ? `#${key.name}` : key.name
}
