import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A block of code in a page or a docstring, as a reader copies it. */
export interface Snippet {
  /** `README.md:20`, the line above its first one. */
  readonly name: string
  /** Its file without the extension: `README-20`. */
  readonly file: string
  readonly code: string
}

/** What strangers compile with: strict, and nothing of this repository's own. */
export const STRANGERS_TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: ['node'],
    module: 'nodenext',
    strict: true,
    skipLibCheck: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    outDir: 'out',
  },
  include: ['*.ts'],
}

/** The reference, which `npm run check -- api` makes of the sources. */
const GENERATED = join('docs', 'api')

/** Every block of TypeScript and JavaScript of README, docs and the packages' READMEs, and every `@example` of the sources. */
export function snippetsOf(root: string): readonly Snippet[] {
  return [
    ...pagesOf(root).flatMap((page) => blocksIn(root, page)),
    ...sourcesOf(root).flatMap((source) => examplesIn(root, source)),
  ]
}

function blocksIn(root: string, page: string): readonly Snippet[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```(?:ts|js|typescript|javascript)\n([^]*?)^```$/gm)].map(
    ({ index, 1: code = '' }) => snippet(page, text, index, code),
  )
}

/** Examples that import what they use. One that does not is a line of a larger program. */
function examplesIn(root: string, source: string): readonly Snippet[] {
  const text = readFileSync(join(root, source), 'utf8')
  return [...text.matchAll(/^ *\* @example\n((?: *\*(?![/]| @).*\n)+)/gm)]
    .map(({ index, 1: lines = '' }) => snippet(source, text, index, lines.replaceAll(/^ *\* ?/gm, '')))
    .filter(({ code }) => /^import /m.test(code))
}

function snippet(file: string, text: string, index: number, code: string): Snippet {
  const line = text.slice(0, index).split('\n').length
  return { name: `${file}:${line}`, file: `${file.replace(/\W/g, '-')}-${line}`, code }
}

function pagesOf(root: string): readonly string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) =>
    join('docs', path),
  )
  const packages = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'README.md'))
  return [
    'README.md',
    ...docs.filter((path) => path.endsWith('.md') && !path.startsWith(GENERATED)),
    ...packages,
  ].sort()
}

function sourcesOf(root: string): readonly string[] {
  const folders = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'src'))
  return folders
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) =>
        join(folder, path),
      ),
    )
    .filter((path) => path.endsWith('.ts'))
    .sort()
}

/** What `how-do-i.test.ts` runs, and asks what it is about. */
const RUN_ELSEWHERE = join('docs', 'how-do-i.md')

/** Whether it is run as it stands: it ends by itself, and needs neither a port nor the network, nor anything it only declares. */
export function runs({ name, code }: Snippet): boolean {
  if (name.startsWith(RUN_ELSEWHERE)) return false
  return !/^declare (?:function|const|let|class) |\.listen\(|\bserve\(|https:\/\/|\.internal\b/m.test(code)
}
