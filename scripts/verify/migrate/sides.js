// One script, two programs: a statement labelled `there` is the other package's alone, one labelled `here` ours, and all others
// are of both.
import { parse } from 'acorn'

/** @typedef {import('acorn').Node & Record<string, any>} Node */

/**
 * @param {string} code
 * @param {'there' | 'here'} side
 */
export function sideOf(code, side) {
  const other = side === 'there' ? 'here' : 'there'
  return statementsOf(code)
    .filter((statement) => labelOf(statement) !== other)
    .map((statement) => textOf(code, bodyOf(statement)))
    .join('\n')
}

/**
 * The other package's side without an option: it is in no object, and calls of a method or a class of this name are undefined.
 * The text is undefined where the name is not used at all.
 * @param {string} code
 * @param {string} name
 */
export function withoutOption(code, name) {
  const there = sideOf(code, 'there')
  /** @type {[start: number, end: number, text: string][]} */
  const changes = []
  for (const statement of statementsOf(there)) visit(statement, name, changes)
  if (changes.length === 0) return undefined
  return changes.reduceRight(
    (text, [start, end, instead]) => text.slice(0, start) + instead + text.slice(end),
    there,
  )
}

/** @param {Node} node @param {string} name @param {[number, number, string][]} changes */
function visit(node, name, changes) {
  const removed = removal(node, name)
  if (removed !== undefined) return void changes.push([node.start, node.end, removed])
  for (const child of Object.values(node).flat()) {
    if (typeof child?.type === 'string') visit(child, name, changes)
  }
}

/**
 * The text in place of a node that is the option.
 * @param {Node} node
 * @param {string} name
 */
function removal(node, name) {
  switch (node.type) {
    case 'Property':
      return node.key.name === name ? '...{}' : undefined
    case 'CallExpression':
    case 'NewExpression':
      return isNamed(node.callee, name) ? 'undefined' : undefined
    case 'AssignmentExpression':
      return node.left.type === 'MemberExpression' && isNamed(node.left, name) ? 'undefined' : undefined
    case 'Identifier':
    case 'MemberExpression':
      return isNamed(node, name) ? 'undefined' : undefined
    default:
      return undefined
  }
}

/** @param {Node} node @param {string} name */
function isNamed(node, name) {
  return (node.type === 'MemberExpression' ? node.property : node).name === name
}

/** @param {string} code @returns {Node[]} */
function statementsOf(code) {
  return parse(code, { ecmaVersion: 2024, sourceType: 'module', allowAwaitOutsideFunction: true }).body
}

/** @param {Node} statement */
const labelOf = (statement) => (statement.type === 'LabeledStatement' ? statement.label.name : undefined)

/** @param {Node} statement */
const bodyOf = (statement) => (labelOf(statement) === undefined ? statement : statement.body)

/** @param {string} code @param {Node} node */
const textOf = (code, { start, end }) => `${code.slice(start, end)};`
