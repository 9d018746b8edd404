import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { FILES } from './files.js'

/** CHANGELOG names files that were there. */
const pages = FILES.filter(
  (path) => path.endsWith('.md') && !/^(?:CHANGELOG|\.changeset\/.+)\.md$/.test(path),
)

/** With a slash before each and one behind each folder, so that `/x.ts` and `/x/` stand at whole names. */
const tree = ['', ...FILES].join('\n/')
const folders = new Set(
  FILES.flatMap((path) =>
    path
      .replace(/^packages\/\w+\/(?:src\/)?/, '')
      .split('/')
      .slice(0, 1),
  ),
)
const packages = new Set(FILES.map((path) => /^packages\/(\w+)\//.exec(path)?.[1]))

describe('the paths that pages name', () => {
  it.each(pages)('lead from %s to files', (page) => {
    expect(pathsIn(readFileSync(page, 'utf8')).filter((path) => !leads(path))).toEqual([])
  })

  it.each([
    ['a file', '`core/src/stores/redis/keyspace.ts`', true],
    ['a file that is not there', '`core/src/stores/redis/redis-key.ts`', false],
    ['the end of a name', '`pace.ts`', false],
    ['a folder of a package', '`stores/redis`', true],
    ['a folder that is not there', '`stores/valkey`', false],
    ['files of a form', '`row-*.mistakes.diff`', true],
    ['one of several', '`packages/{core,nowhere}/api.md`', false],
    ['a name to be chosen', '`lua/<name>.lua`', true],
  ])('are followed: %s', (_, text, leadsThere) => {
    expect(pathsIn(text).map(leads)).toEqual([leadsThere])
  })

  it.each(['`@sluice/core/redis`', '`hono/bun`', '`/metrics`', '`req.ip`', '`npm run check -- api`'])(
    'are no %s',
    (text) => expect(pathsIn(text)).toEqual([]),
  )
})

describe('the commands that pages name', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const lists = ['verify', 'check', 'bench'].map((command) => {
    const { stdout } = spawnSync(process.execPath, [`scripts/${command}.js`], { encoding: 'utf8' })
    return [command, [...stdout.matchAll(/ -- (\S+)/g)].map(([, subject]) => subject)] as const
  })
  const subjects = new Map<string, readonly unknown[]>(lists)

  it.each(pages)('are there, in %s', (page) => {
    const named = [...readFileSync(page, 'utf8').matchAll(/\bnpm run ([a-z]+)(?: -- ([a-z][\w-]*))?/g)]
    const wrong = named.filter(([, command = '', subject]) => {
      if (!Object.hasOwn(scripts, command)) return true
      return subject !== undefined && subjects.get(command)?.includes(subject) === false
    })
    expect(wrong.map(([text]) => text)).toEqual([])
  })
})

/** Packages of others, what is built, and forms of what is written by hand. */
const ELSEWHERE =
  /^(?:ipaddr\.js|c\.json|rate-limiter-flexible\/.+|docs\/api)$|\b(?:NAME|dist|node_modules|reports)\b/

/** The code of a page that is a path: with the ending of a source, or below a folder of the repository. */
function pathsIn(page: string): readonly string[] {
  const text = page.replaceAll(/^```[^]*?^```$/gm, '')
  return [...text.matchAll(/`([\w.{},*<>-]+(?:\/[\w.{},*<>-]*)*)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => {
      const [first = '', second] = path.split('/')
      const isBelow =
        second !== undefined && (folders.has(first) || (packages.has(first) && /^(?:src|test)$/.test(second)))
      return (
        (isBelow || /\.(?:c?js|d\.mts|diff|json|lua|md|mjs|sh|tsx?|vue|ya?ml)$/.test(path)) &&
        !ELSEWHERE.test(path)
      )
    })
}

/** Whether files of this path are there: from the root, from `packages`, or from any folder that is understood. */
function leads(path: string): boolean {
  const [, before, list, after] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(path) ?? []
  if (list !== undefined) return list.split(',').every((each) => leads(`${before}${each}${after}`))
  const form = path
    .replace(/\/$/, '')
    .replaceAll('.', String.raw`\.`)
    .replaceAll(/\*|<\w+>/g, '[^/\n]+')
  return new RegExp(`/${form}(?:/|$)`, 'm').test(tree)
}
