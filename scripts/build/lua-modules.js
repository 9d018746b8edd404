// The scripts of lua/ as a source of core: a module of texts. Comments and spaces that only people read are left out; comments
// that begin with "-- word:" say what a module needs and stay.
import { readdirSync, readFileSync } from 'node:fs'

/** A comment that says what a module needs. */
const DECLARATION = /^--\s*@|^-- (needs|functions|cells|brings|slots|valid( of [\w-]+)?): /

/** A text in quotes, which stays, or a comma or an operator with spaces that Lua does not need, or a comment behind a line. */
const SPACED = /'(?:[^'\\]|\\.)*'|(,) | ([=~<>]=|[=<>+*/%]|-(?= [^-])|(?<=\D )\.\.) | -- (?!\s*@).*$/g

/**
 * The module, with each file as `change` makes it: `verify -- simulation` plants mistakes.
 * @param {(file: string, lua: string) => string} [change]
 */
export function luaModules(change = (_, lua) => lua) {
  const modules = readdirSync('lua')
    .filter((file) => file.endsWith('.lua'))
    .toSorted()
    .map((file) => [file.slice(0, -4), stripped(change(`lua/${file}`, readFileSync(`lua/${file}`, 'utf8')))])
  const object = JSON.stringify(Object.fromEntries(modules), undefined, 2)
  return `// Made from lua/ by scripts/build/embed-lua.js.
export const modules: Readonly<Record<string, string>> = ${object}
`
}

/** @param {string} lua */
function stripped(lua) {
  return lua
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && (!line.startsWith('--') || DECLARATION.test(line)))
    .map((line) => (/^--(?!@)/.test(line) ? line : line.replace(SPACED, tight)))
    .join('\n')
}

/**
 * @param {string} text
 * @param {string | undefined} comma
 * @param {string | undefined} operator
 */
function tight(text, comma, operator) {
  return text.startsWith("'") ? text : (comma ?? operator ?? '')
}
