import { readFileSync } from 'node:fs'
import { FILES } from './files.js'

const CONTRIBUTING = readFileSync('CONTRIBUTING.md', 'utf8')
const ADAPTERS = FILES.map((path) => /^packages\/(\w+)\/test\/kit-app\.ts$/.exec(path)?.[1]).filter(
  (name) => name !== undefined && name !== 'http',
) as readonly string[]

/** Without the list itself, the reasons of changes, and what screenshots show. */
const places = FILES.filter(
  (path) => !/^(?:\.changeset\/|CONTRIBUTING\.md$|docs\/test\/|site\/screenshots\/)/.test(path),
)

describe('the files of an adapter', () => {
  const section = sectionOf('Adding an adapter')
  /** All places that list adapters name each of them, also in braces, as in `{express,koa}`. */
  const listing = places.filter(
    (path) => isOutside(path, ADAPTERS) && ADAPTERS.every((name) => names(path, name)),
  )

  it('are those of every package that runs the kit', () => expect(ADAPTERS).toContain('koa'))

  it('are all in the list: those of Koa, and the places that list adapters', () => {
    expect(notIn(section.paths, [...ownFiles('koa'), ...listing])).toEqual([])
  })

  it.each(section.table)('have nothing that names no Koa: %s', (form) => {
    expect(FILES.filter(matches(form)).filter((path) => names(path, 'koa'))).not.toEqual([])
  })

  it.each(ADAPTERS)('are there for %s, as its package and in each place of the list', (name) => {
    const own = section.table.filter((form) => form.startsWith('packages/koa/') && !form.includes('test/'))
    const missing = own.map((form) => form.replace('koa', name)).filter((form) => !FILES.some(matches(form)))
    const shared = section.table.filter((form) => !form.includes('koa'))
    const unnamed = FILES.filter((path) => shared.some((form) => matches(form)(path)) && !names(path, name))
    expect([...missing, ...unnamed]).toEqual([])
  })
})

describe('the files of a store', () => {
  const section = sectionOf('Adding a store')
  const PACKAGE =
    /@sluice\/postgres\b|\bpackages\/postgres\b|\bpostgresStore\b|\{[\w,]*\bpostgres\b[\w,]*\}\/src/

  it('are all in the list: those of postgres, and what names its package', () => {
    const naming = places.filter(
      (path) => isOutside(path, ['postgres']) && PACKAGE.test(readFileSync(path, 'utf8')),
    )
    expect(notIn(section.paths, [...ownFiles('postgres'), ...naming])).toEqual([])
  })

  it.each(section.table)('have nothing that names no Postgres: %s', (form) => {
    expect(FILES.filter(matches(form)).filter((path) => names(path, 'postgres'))).not.toEqual([])
  })
})

/** The paths that a section names, of them those in its table, with all that braces hold. */
function sectionOf(title: string): { readonly paths: readonly string[]; readonly table: readonly string[] } {
  const [, text = ''] = new RegExp(`^## ${title}\n([^]*?)(?=^## )`, 'm').exec(CONTRIBUTING) ?? []
  return { paths: pathsIn(text), table: pathsIn((text.match(/^\|.*$/gm) ?? []).join('\n')) }
}

function pathsIn(text: string): readonly string[] {
  const spans = [...text.matchAll(/`([\w.{},*-]+(?:\/[\w.{},*-]*)*)`/g)].map(([, path = '']) => path)
  return spans.flatMap(unfolded).filter((form) => FILES.some(matches(form)))
}

/** `a/{b,c}` as `a/b` and `a/c`. */
function unfolded(path: string): readonly string[] {
  const [, before = '', list, after = ''] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(path) ?? []
  return list === undefined ? [path] : list.split(',').map((each) => `${before}${each}${after}`)
}

/** Whether a path is of a form, or in a folder of that name. */
function matches(form: string): (path: string) => boolean {
  const source = form.replaceAll('.', String.raw`\.`).replaceAll('*', '[^/]*')
  const whole = new RegExp(form.endsWith('/') ? `^${source}` : `^${source}$`)
  return (path) => whole.test(path)
}

function notIn(forms: readonly string[], paths: readonly string[]): readonly string[] {
  return paths.filter((path) => !forms.some((form) => matches(form)(path)))
}

function ownFiles(name: string): readonly string[] {
  return FILES.filter((path) => !isOutside(path, [name]))
}

function isOutside(path: string, packages: readonly string[]): boolean {
  return !packages.some(
    (name) => path.startsWith(`packages/${name}/`) || path.startsWith(`examples/${name}/`),
  )
}

/** Whether a file says this word, or has it in its path. */
function names(path: string, word: string): boolean {
  return new RegExp(String.raw`\b${word}\b`, 'i').test(`${path}\n${readFileSync(path, 'utf8')}`)
}
