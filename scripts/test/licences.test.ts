import { Project } from './project.js'

const CORE = { name: '@sluice/core', version: '1.0.0', license: 'MIT' }

let project: Project
beforeEach(() => void (project = new Project()))
afterEach(() => project.remove())

/** What the check says of a core package with these fields, where these packages are installed. */
function check(
  fields: object,
  installed: Readonly<Record<string, object>>,
  files: Record<string, string> = {},
) {
  project.write({ 'packages/core/package.json': { ...CORE, ...fields }, ...files })
  for (const [name, manifest] of Object.entries(installed))
    project.write({ [`node_modules/${name}/package.json`]: { name, version: '2.0.0', ...manifest } })
  return project.run('check/licences.js')
}

describe('the check of licences', () => {
  it.each(['MIT', 'ISC', 'BSD-3-Clause', 'Apache-2.0'])('takes a dependency under %s', (license) => {
    const { status, output } = check({ dependencies: { dep: '2' } }, { dep: { license } })
    expect([status, output]).toEqual([0, expect.stringContaining('2 packages, 0 problems')])
  })

  it.each([
    ['GPL-3.0-only', 'GPL-3.0-only'],
    ['(MIT OR GPL-2.0)', '(MIT OR GPL-2.0)'],
    [undefined, 'unknown'],
    [{ type: 'MIT' }, 'unknown'],
  ])('refuses a dependency under %p', (license, named) => {
    const { status, output } = check({ dependencies: { dep: '2' } }, { dep: { license } })
    expect([status, output]).toEqual([
      1,
      expect.stringContaining(`dep 2.0.0: the licence is ${named}, not one of`),
    ])
  })

  it('follows dependencies to their ends, optional ones too', () => {
    const { status, output } = check(
      { optionalDependencies: { dep: '2' } },
      { dep: { license: 'MIT', dependencies: { deeper: '2' } }, deeper: { license: 'GPL-3.0-only' } },
    )
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('deeper 2.0.0: the licence is GPL-3.0-only'),
    ])
  })

  it('looks at the licence of a peer, and not at what that depends on', () => {
    const peerDependencies = { peer: '2' }
    const brings = { dependencies: { deeper: '2' }, scripts: { install: 'make' } }
    const deeper = { license: 'GPL-3.0-only' }
    expect(check({ peerDependencies }, { peer: { license: 'MIT', ...brings }, deeper }).status).toBe(0)
    expect(check({ peerDependencies }, { peer: { license: 'GPL-3.0-only' } }).status).toBe(1)
  })

  it.each(['preinstall', 'install', 'postinstall'])('refuses a dependency with a script %s', (script) => {
    const dep = { license: 'MIT', scripts: { [script]: 'make', test: 'jest' } }
    const { status, output } = check({ dependencies: { dep: '2' } }, { dep })
    expect([status, output]).toEqual([
      1,
      expect.stringContaining(`dep 2.0.0: runs ${script} when it is installed`),
    ])
  })

  it('refuses one that is compiled, and one that is not there', () => {
    const dependencies = { dep: '2', missing: '2' }
    const { status, output } = check(
      { dependencies },
      { dep: { license: 'MIT' } },
      { 'node_modules/dep/binding.gyp': '' },
    )
    expect(status).toBe(1)
    expect(output).toContain('dep 2.0.0: is compiled when it is installed')
    expect(output).toContain('missing: a dependency of @sluice/core that is not installed here')
  })
})
