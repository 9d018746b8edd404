import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(__dirname, '../..')

/** Every option that a published package declares. A declaration spread into another is listed where it stands. */
const OPTIONS = packages().flatMap((name) => optionsOf(`packages/${name}/src`))
const PAGES = ['docs', ...packages().map((name) => `packages/${name}/README.md`)].flatMap((path) =>
  filesIn(path, '.md'),
)
const TESTS = packages().flatMap((name) => filesIn(`packages/${name}/test`, '.ts'))
const KITS = ['packages/harness/src', 'packages/testing/src'].flatMap((path) => filesIn(path, '.ts'))
const TEXT = PAGES.filter((path) => !/CHANGELOG|docs\/(?:api|decisions|benchmarks|migrate)\//.test(path))
  .map(read)
  .join('\n')
const CODE = [...TESTS, ...KITS].map(read).join('\n')

describe('each declared option', () => {
  it('is found', () => expect(OPTIONS.length).toBeGreaterThan(60))

  it('is written about in the docs', () => {
    const named = (option: string) => new RegExp(`\`[^\`\n]*\\b${option}\\b[^\`\n]*\``).test(TEXT)
    expect(OPTIONS.filter(({ option }) => !named(option))).toEqual([])
  })

  it('is set by a test', () => {
    const set = (option: string) => new RegExp(`\\b${option}(?::|,| \\}|\\b'?\\])`).test(CODE)
    expect(OPTIONS.filter(({ option }) => !set(option))).toEqual([])
  })
})

function optionsOf(folder: string): { readonly option: string; readonly declared: string }[] {
  return filesIn(folder, '.ts').flatMap((file) => {
    const declarations = [
      ...read(file).matchAll(/^(?:export )?const \w+ = \{\n((?:(?!^\})[^])*)^\} satisfies DeclarationOf</gm),
    ]
    const names = declarations.flatMap(([, body = '']) => [...body.matchAll(/^ {2}(\w+)(?::|,$)/gm)])
    return names.map(([, option = '']) => ({ option, declared: file }))
  })
}

function packages(): readonly string[] {
  const all = readdirSync(join(ROOT, 'packages'))
  return all.filter((name) => !JSON.parse(read(`packages/${name}/package.json`)).private)
}

function filesIn(path: string, extension: string): readonly string[] {
  if (path.endsWith(extension)) return [path]
  const files = readdirSync(join(ROOT, path), { recursive: true, encoding: 'utf8' })
  return files.filter((file) => file.endsWith(extension)).map((file) => join(path, file))
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}
