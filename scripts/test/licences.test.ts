import { Project } from './project.js'

const CORE = { name: '@sluice/core', version: '1.0.0', license: 'MIT' }

const project = new Project()

/** The findings of the check in a core package with these fields, where package-lock.json has these packages. */
function check(fields: object, locked: Readonly<Record<string, object>>) {
  const packages = Object.entries(locked).map(([name, entry]) => [
    `node_modules/${name}`,
    { version: '2.0.0', ...entry },
  ])
  return project
    .write({
      'packages/core/package.json': { ...CORE, ...fields },
      'package-lock.json': { packages: Object.fromEntries(packages) as object },
    })
    .run('check/licences.js')
}

describe('the check of licences', () => {
  it.each(['MIT', 'ISC', 'BSD-3-Clause', 'Apache-2.0'])('takes a dependency under %s', (license) => {
    const { status, output } = check({ dependencies: { dep: '2' } }, { dep: { license } })
    expect([status, output]).toEqual([0, expect.stringContaining('1 packages, 0 problems')])
  })

  it.each([
    ['GPL-3.0-only', 'GPL-3.0-only'],
    ['(MIT OR GPL-2.0)', '(MIT OR GPL-2.0)'],
    [undefined, 'unknown'],
  ])('refuses a dependency under %p', (license, named) => {
    const { status, output } = check({ dependencies: { dep: '2' } }, { dep: { license } })
    expect([status, output]).toEqual([
      1,
      expect.stringContaining(`dep 2.0.0: the licence is ${named}, not one of`),
    ])
  })

  it('follows dependencies to their ends, optional ones too', () => {
    const { status, output } = check(
      { dependencies: { dep: '2' } },
      { dep: { license: 'MIT', optionalDependencies: { deeper: '2' } }, deeper: { license: 'GPL-3.0-only' } },
    )
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('deeper 2.0.0: the licence is GPL-3.0-only'),
    ])
  })

  it('looks at the licence of a peer, and not at what that depends on', () => {
    const peerDependencies = { peer: '2' }
    const brings = { dependencies: { deeper: '2' }, hasInstallScript: true }
    const deeper = { license: 'GPL-3.0-only' }
    expect(check({ peerDependencies }, { peer: { license: 'MIT', ...brings }, deeper }).status).toBe(0)
    expect(check({ peerDependencies }, { peer: { license: 'GPL-3.0-only' } }).status).toBe(1)
  })

  it('takes the package that is nearest to what needs it', () => {
    const { status, output } = check(
      { dependencies: { dep: '2' } },
      {
        dep: { license: 'MIT', dependencies: { deeper: '1' } },
        deeper: { license: 'MIT' },
        'dep/node_modules/deeper': { license: 'GPL-3.0-only', version: '1.0.0' },
      },
    )
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('deeper 1.0.0: the licence is GPL-3.0-only'),
    ])
  })

  it('refuses a dependency that runs a script when it is installed, and one that is not locked', () => {
    const { status, output } = check(
      { dependencies: { dep: '2', missing: '2' } },
      { dep: { license: 'MIT', hasInstallScript: true } },
    )
    expect(status).toBe(1)
    expect(output).toContain('dep 2.0.0: runs a script when it is installed')
    expect(output).toContain('missing in no lock: the licence is unknown')
  })
})
