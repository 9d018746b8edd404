import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Project } from './project.js'

const SCRIPT = 'check/pictures.js'
const PICTURE = 'docs/pictures/outage.svg'

const project = new Project({
  'README.md': '![](docs/pictures/algorithms.svg)\n',
  'docs/outages.md': '![](pictures/outage.svg)\n![Another](other.svg)\n',
})
beforeEach(() => void project.run(SCRIPT, '--write'))

const isOf = (file: string) => ({
  status: 1,
  output: expect.stringContaining(
    `2 pictures, 1 files differ\n${file} is not what npm run check -- pictures --write makes it\n`,
  ) as string,
})

describe('the pictures', () => {
  it('are drawn with the words that stand for them, the same each time', () => {
    expect(project.run(SCRIPT)).toEqual({ status: 0, output: '2 pictures, 0 files differ\n' })
    expect(project.read('README.md')).toContain('fixedWindow 20, all within 4 seconds')
    expect(project.read('docs/outages.md')).toMatch(/^!\[What passes [^]*'local' 36 a second.*\n!\[Another\]/)
  })

  it('are in the size of a phone: no text of less than 16 units of 540', () => {
    for (const picture of [PICTURE, 'docs/pictures/algorithms.svg']) {
      const svg = project.read(picture)
      const sizes = [...svg.matchAll(/(?:font-size|font): (?:\d+ )?([\d.]+)px/g)].map(([, px]) => Number(px))
      expect(svg).toContain('viewBox="0 0 540 ')
      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(16)
      expect(svg).toContain('prefers-color-scheme: dark')
    }
  })

  it('are found where one shows something else', () => {
    const drawn = project.read(PICTURE)
    expect(project.write({ [PICTURE]: drawn.replace('36/s', '12/s') }).run(SCRIPT)).toEqual(isOf(PICTURE))
  })

  it('are found where its words say something else', () => {
    const page = project.read('README.md').replace('gcra 10', 'gcra 11')
    expect(project.write({ 'README.md': page }).run(SCRIPT)).toEqual(isOf('README.md'))
  })

  it('have a row for an algorithm without a caption, with its defaults', () => {
    const store = pathToFileURL(resolve('packages/core/dist/bundle/store.mjs')).href
    const { output } = project.evaluate(
      'check/pictures/algorithms.js',
      `import { algorithms } from '${store}'\nconsole.log(own.algorithms({ ...algorithms, further: algorithms.gcra }).alt)`,
    )
    expect(output).toMatch(/; gcra 10; further 19\.\n$/)
  })
})
