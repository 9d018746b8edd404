// Lists names of types that stand for two things, and where the glossary and the names in the code disagree: npm run check --
// names. One name, one declaration, over all packages that are published; SHARED is one public name for the same thing in each
// adapter. Each word of docs/glossary.md is part of a name in the code, and no type is named by a word that it replaces.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const SHARED = new Set(['RateLimitOptions'])
/** Words of other libraries, and ours. */
const REPLACED = new Map([
  ['Throttler', 'limiter'],
  ['Rule', 'policy'],
  ['Weight', 'cost'],
  ['Identifier', 'key'],
  ['Tracker', 'key'],
  ['Place', 'booking or permit'],
  ['Driver', 'store'],
  ['Plugin', 'adapter'],
])
const DECLARATION = /^(?:export )?(?:abstract )?(?:interface|class|type) (\w+)/gm

/** @type {Map<string, string[]>} */
const filesOf = new Map()
/** All names, in any case: identifiers and texts of the sources without comments. */
let code = ''
for (const name of readdirSync('packages')) {
  const { private: isPrivate = false } = JSON.parse(readFileSync(`packages/${name}/package.json`, 'utf8'))
  // The conformance kit describes policies a second time, in words of its own.
  if (isPrivate || name === 'testing') continue
  for (const file of readdirSync(`packages/${name}/src`, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue
    const path = join('packages', name, 'src', file)
    const source = readFileSync(path, 'utf8')
    code += source.replace(/\/\*[^]*?\*\/|\/\/.*/g, '').toLowerCase()
    for (const [, type = ''] of source.matchAll(DECLARATION)) {
      const files = filesOf.get(type) ?? []
      if (!files.includes(path)) filesOf.set(type, [...files, path])
    }
  }
}
const twice = [...filesOf].filter(([type, files]) => files.length > 1 && !SHARED.has(type))
for (const [type, files] of twice) console.log(`${type} is declared in ${files.join(' and ')}`)
const replaced = [...filesOf].flatMap(([type, files]) =>
  [...REPLACED]
    .filter(([word]) => new RegExp(`${word}(?![a-z])|${word}s(?![a-z])`).test(type))
    .map(([word, ours]) => `${type} in ${files[0]} is named by '${word}': the glossary has ${ours}`),
)
const words = [
  ...readFileSync('docs/glossary.md', 'utf8').matchAll(/^\| (?!word)([a-z][^|]*?) \|/gim),
].flatMap(([, cell = '']) => cell.split(', '))
const unused = words
  .filter((word) => !code.includes(word.toLowerCase().replace(/[ -]/g, '')))
  .filter((word) => !code.includes(word.toLowerCase().split(' ').at(-1) ?? word))
  .map((word) => `no name in the code has the glossary's '${word}'`)
for (const line of [...replaced, ...unused]) console.log(line)
console.log(
  `${filesOf.size} names of types, ${twice.length} declared twice, ${words.length} words of the glossary`,
)
process.exitCode = twice.length + replaced.length + unused.length > 0 ? 1 : 0
