import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A block of code in a page, as a reader copies it. */
export interface Snippet {
  /** `README.md:20`, the line of the fence. */
  readonly name: string
  /** Its file without the extension: `README-20`. */
  readonly file: string
  readonly code: string
}

/** Every block of TypeScript and JavaScript of README, docs and the packages' READMEs. */
export function snippetsOf(root: string): readonly Snippet[] {
  return pagesOf(root).flatMap((page) => {
    const text = readFileSync(join(root, page), 'utf8')
    return [...text.matchAll(/^```(?:ts|js|typescript|javascript)\n([^]*?)^```$/gm)].map(
      ({ index, 1: code = '' }) => {
        const line = text.slice(0, index).split('\n').length
        return { name: `${page}:${line}`, file: `${page.replace(/\W/g, '-')}-${line}`, code }
      },
    )
  })
}

function pagesOf(root: string): readonly string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((path) =>
    join('docs', path),
  )
  const packages = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'README.md'))
  return ['README.md', ...docs.filter((path) => path.endsWith('.md')), ...packages].sort()
}

/** Whether it ends by itself: it needs neither a port nor the network, nor anything it only declares. */
export function runs({ code }: Snippet): boolean {
  return !/^declare (?:function|const|let|class) |\.listen\(|\bserve\(|https:\/\/|\.internal\b/m.test(code)
}
