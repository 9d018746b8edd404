import { readdirSync, readFileSync } from 'node:fs'

/** Identifiers and texts of the sources that are published, without comments and in lower case. */
const code = readdirSync('packages')
  .filter((name) => !['bench', 'demo', 'faults', 'harness', 'testing'].includes(name))
  .flatMap((name) =>
    readdirSync(`packages/${name}/src`, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(`packages/${name}/src/${file}`, 'utf8')),
  )
  .join('\n')
  .replace(/\/\*[^]*?\*\/|\/\/.*/g, '')
  .toLowerCase()

const words = [
  ...readFileSync('docs/glossary.md', 'utf8').matchAll(/^\| (?!word)([a-z][^|]*?) \|/gim),
].flatMap(([, cell = '']) => cell.toLowerCase().split(', '))

describe('the glossary', () => {
  it('has words', () => expect(words.length).toBeGreaterThan(20))

  it.each(words)('has the word "%s", which is part of a name in the code', (word) => {
    const names = [word.replace(/[ -]/g, ''), word.split(' ').at(-1)!]
    expect(names.filter((name) => code.includes(name))).not.toEqual([])
  })
})
