import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const index = readFileSync('docs/README.md', 'utf8')
/** The reference is made of the sources, and is not committed. */
const GENERATED = join('docs', 'api')

const FOLDERS = ['recipes', 'migrate', 'benchmarks', 'decisions']
const pages = [
  ...readdirSync('docs').filter((name) => name.endsWith('.md') && name !== 'README.md'),
  ...FOLDERS.map((folder) => `${folder}/README.md`),
]

describe('the pages of docs', () => {
  it.each(pages)('%s is in the index, once', (page) => {
    expect(index.split(`](${page})`)).toHaveLength(2)
  })

  it.each(pages)('%s says in its first line for whom it is', (page) => {
    const text = readFileSync(join('docs', page), 'utf8')
    expect(text).toMatch(/^# .+\n\n\*For .+\*\n|^# Coming from /)
  })

  it('has no page in the index that is not there', () => {
    const linked = [...index.matchAll(/\]\(([^)#]+)/g)].map(([, path = '']) => join('docs', path))
    expect(linked.filter((path) => !existsSync(path))).toEqual([])
  })

  it.each(everyPage())('%s links to files and headings that are there', (page) => {
    expect(brokenLinks(page)).toEqual([])
  })

  it('explains each warning in one place', () => {
    const codes = /^### ([A-Z_]+)$/gm
    const explained = [...readFileSync('docs/errors.md', 'utf8').matchAll(codes)].map(([, code]) => code)
    const http = readFileSync('docs/http.md', 'utf8')
    expect(explained.filter((code) => http.includes(`| \`${code}\` |`))).toEqual([])
  })
})

function everyPage(): readonly string[] {
  const inside = (folder: string) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path))
  const packages = readdirSync('packages').map((name) => join('packages', name, 'README.md'))
  return [
    ...readdirSync('.'),
    ...[...inside('docs'), ...inside('examples')].filter((path) => !path.startsWith(GENERATED)),
    ...packages.filter((path) => existsSync(path)),
  ].filter((path) => path.endsWith('.md'))
}

/** Links of a page to files, or to headings of Markdown, that are not there. */
function brokenLinks(page: string): readonly string[] {
  const text = readFileSync(page, 'utf8').replaceAll(/^```[^]*?^```$/gm, '')
  return [...text.matchAll(/\]\(([^)\s]*)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => {
      if (/^https?:/.test(link)) return false
      const [path = '', heading] = link.split('#')
      const file = path === '' ? page : join(dirname(page), path)
      if (!existsSync(file)) return true
      return heading !== undefined && !slugsOf(readFileSync(file, 'utf8')).includes(heading)
    })
}

/** The anchors of a page's headings, as GitHub makes them. */
function slugsOf(markdown: string): readonly string[] {
  return [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}
