import { Project } from './project.js'

const OWN = 'https://example.com/owner/name'
const CORE = { name: '@sluice/core', version: '0.1.0', license: 'MIT', files: ['index.js'], main: 'index.js' }

const project = new Project({
  'package.json': { name: 'sluice', private: true, repository: '' },
  'packages/core/package.json': CORE,
  'packages/core/index.js': 'exports.a = 1\n',
  'packages/core/README.md': 'Core.\n',
  'packages/testing/package.json': { name: '@sluice/testing', version: '0.1.0', private: true },
  'out/.keep': '',
})

const pack = () => project.evaluate('release/pack.js', "console.log(JSON.stringify(own.packAll('out')))")
/** The repository in the manifest of the tarball. */
const PACKED = `
  import { execFileSync } from 'node:child_process'
  const [{ file }] = own.packAll('out')
  const manifest = execFileSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' })
  console.log('repository: ' + JSON.stringify(JSON.parse(manifest).repository))`

describe('a packed package', () => {
  it('is made of each that is not private, in an order in which they can be published', () => {
    project.write({
      'packages/bucket/package.json': {
        ...CORE,
        name: '@sluice/bucket',
        dependencies: { '@sluice/core': '~0.1.0' },
      },
    })
    const { status, output } = pack()
    expect(status).toBe(0)
    const names = [...output.matchAll(/^(@sluice\/\w+) 0\.1\.0: \d+ files/gm)].map(([, name]) => name)
    expect(names).toEqual(['@sluice/core', '@sluice/bucket'])
    expect(project.has('out/sluice-core-0.1.0.tgz')).toBe(true)
  })

  it('names the repository of package.json and no other', () => {
    project.write({ 'packages/core/README.md': `See ${OWN}/issues, or https://github.com/other/thing.\n` })
    const { status, output } = pack()
    const message = 'packages/core/README.md names another repository: https://github.com/other/thing'
    expect([status, output]).toEqual([1, expect.stringContaining(message)])
  })

  it.each([
    ['', 'undefined'],
    [OWN, `{"type":"git","url":"git+${OWN}.git","directory":"packages/core"}`],
    [`${OWN}.git`, `{"type":"git","url":"git+${OWN}.git","directory":"packages/core"}`],
  ])('of the repository %j has it in its manifest', (repository, written) => {
    project.write({ 'package.json': { repository } })
    const { status, output } = project.evaluate('release/pack.js', PACKED)
    expect([status, output]).toEqual([0, expect.stringContaining(`repository: ${written}\n`)])
  })

  it.each([
    'github:owner/name',
    'git@example.com:owner/name',
    'https://example.com',
    'http://example.com/a/b',
  ])('cannot be of the repository %s', (repository) => {
    project.write({ 'package.json': { repository } })
    const { status, output } = pack()
    expect([status, output]).toEqual([1, expect.stringContaining('must be https://HOST/OWNER/NAME or empty')])
  })
})

describe('the SBOM', () => {
  it('lists what is installed with its licence, and no folder of the machine that made it', () => {
    const tarballs = `[{ name: '@sluice/core', version: '0.1.0', file: process.cwd() + '/out/sluice-core-0.1.0.tgz' }]`
    expect(pack().status).toBe(0)
    const { status, output } = project.evaluate(
      'release/sbom.js',
      `own.writeSbom(${tarballs}, 'out/sbom.json')`,
    )
    expect([status, output]).toEqual([0, expect.stringContaining('SBOM: @sluice/core 0.1.0')])
    const text = project.read('out/sbom.json')
    const { bomFormat, components } = JSON.parse(text) as { bomFormat: string; components: object[] }
    expect([bomFormat, components]).toEqual([
      'CycloneDX',
      [expect.objectContaining({ version: '0.1.0', licenses: [{ license: { id: 'MIT' } }] })],
    ])
    expect(text).not.toContain(project.folder)
  })
})
