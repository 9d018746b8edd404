import { Project } from './project.js'

const CORE = { name: '@sluice/core', version: '1.0.0', license: 'MIT' }

const project = new Project()

/** The findings of the check in a core package with these fields, where package-lock.json has these packages. */
function check(fields: object, locked: Readonly<Record<string, object>>) {
  const others = Object.entries(locked).map(([name, entry]) => [
    `node_modules/${name}`,
    { version: '2.0.0', ...entry },
  ])
  const root = { name: 'sluice', workspaces: ['packages/*'] }
  const packages = {
    '': root,
    'packages/core': { ...CORE, ...fields },
    'node_modules/@sluice/core': { resolved: 'packages/core', link: true },
    ...(Object.fromEntries(others) as object),
  }
  return project
    .write({
      'package.json': root,
      'packages/core/package.json': { ...CORE, ...fields },
      'package-lock.json': { lockfileVersion: 3, packages },
    })
    .run('check/licences.js')
}

describe('the check of licences', () => {
  it.each(['MIT', 'ISC', 'BSD-3-Clause', 'Apache-2.0'])('takes a dependency under %s', (license) => {
    expect(check({ dependencies: { dep: '2' } }, { dep: { license } })).toEqual({
      status: 0,
      output: `dependency  ${license.padEnd(12)}  dep 2.0.0\n0 problems\n`,
    })
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

  it('refuses a dependency that runs a script when it is installed, and one that is not locked', () => {
    const dep = { license: 'MIT', hasInstallScript: true }
    const { status, output } = check({ dependencies: { dep: '2' } }, { dep })
    expect([status, output]).toEqual([
      1,
      expect.stringContaining('dep 2.0.0: runs a script when it is installed'),
    ])
    const unlocked = check({ dependencies: { missing: '2' }, peerDependencies: { peer: '2' } }, {})
    expect([unlocked.status, unlocked.output]).toEqual([1, expect.stringContaining('missing: missing@2')])
    const { output: ofPeer } = check({ peerDependencies: { peer: '2' } }, {})
    expect(ofPeer).toContain('peer in no lock: the licence is unknown')
  })
})
