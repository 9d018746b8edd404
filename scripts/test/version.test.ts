import { Project } from './project.js'

const CONFIG = {
  changelog: false,
  commit: false,
  fixed: [['@sluice/*']],
  access: 'public',
  baseBranch: 'main',
  updateInternalDependencies: 'patch',
}
const CORE = { name: '@sluice/core', version: '0.1.0' }
const EXPRESS = { name: '@sluice/express', version: '0.1.0', dependencies: { '@sluice/core': '~0.1.0' } }

const project = new Project({
  'package.json': { name: 'sluice', private: true, repository: '', workspaces: ['packages/*'] },
  'packages/core/package.json': CORE,
  'packages/express/package.json': EXPRESS,
  '.changeset/config.json': CONFIG,
  'CHANGELOG.md': '# Changelog\n\n## 0.1.0\n\n- The first.\n',
})

const changeset = (kind: string, text = 'Keys may be longer.') =>
  `---\n'@sluice/core': ${kind}\n---\n\n${text}\n`
const manifestOf = (name: string) => JSON.parse(project.read(`packages/${name}/package.json`)) as object

describe('npm run release -- version', () => {
  it.each([
    ['minor', '0.2.0'],
    ['patch', '0.1.1'],
    ['major', '1.0.0'],
  ])('raises all packages by a %s change of one, and what they depend on', (kind, version) => {
    const { status, output } = project
      .write({ '.changeset/long-keys.md': changeset(kind) })
      .run('release.js', 'version')
    expect([status, output]).toEqual([0, expect.stringContaining(`version ${version}: commit this`)])
    expect(manifestOf('core')).toEqual({ ...CORE, version })
    const dependencies = { '@sluice/core': `~${version}` }
    expect(manifestOf('express')).toEqual({ ...EXPRESS, version, dependencies })
    expect(project.read('CHANGELOG.md')).toBe(
      `# Changelog\n\n## ${version}\n\n- @sluice/core: Keys may be longer.\n\n## 0.1.0\n\n- The first.\n`,
    )
    expect(project.has('.changeset/long-keys.md')).toBe(false)
  })

  it('releases a version that CHANGELOG calls unreleased, with the changesets of then', () => {
    const { status } = project
      .write({
        'CHANGELOG.md': '# Changelog\n\n## 0.1.0 (unreleased)\n\n- The first.\n',
        '.changeset/long-keys.md': changeset('minor', 'Keys may be\nlonger.'),
      })
      .run('release.js', 'version')
    expect([status, manifestOf('core')]).toEqual([0, CORE])
    expect(project.read('CHANGELOG.md')).toContain('## 0.1.0\n')
    expect(project.read('CHANGELOG.md')).toContain('- The first.\n')
    expect(project.read('CHANGELOG.md')).toContain('- @sluice/core: Keys may be\n  longer.\n')
    expect(project.has('.changeset/long-keys.md')).toBe(false)
  })

  it('needs a changeset, and packages of one version', () => {
    expect(project.run('release.js', 'version').output).toContain('there is nothing to release')
    project.write({
      'CHANGELOG.md': '# Changelog\n\n## 0.1.0 (unreleased)\n',
      'packages/core/package.json': { ...CORE, version: '0.1.1' },
    })
    const { status, output } = project.run('release.js', 'version')
    expect([status, output]).toEqual([1, expect.stringContaining('of several versions: 0.1.1, 0.1.0')])
  })

  it.each([
    ['names no package', '---\n---\n\nKeys may be longer.\n'],
    ['has another kind of change', changeset('huge')],
    ['says nothing', changeset('minor', '')],
    ['has no head', 'Keys may be longer.\n'],
  ])('refuses a changeset that %s', (_, text) => {
    const { status, output } = project.write({ '.changeset/one.md': text }).run('release.js', 'version')
    const message = '.changeset/one.md must name a package with major, minor or patch, and say what changes'
    expect([status, output]).toEqual([1, expect.stringContaining(message)])
  })
})

describe('npm run release -- publish', () => {
  it('publishes nothing while the address of the repository is empty', () => {
    const { status, output } = project.run('release.js', 'publish')
    expect([status, output]).toEqual([1, expect.stringContaining('"repository" in package.json is empty')])
  })

  it.each([
    ['a changeset', { '.changeset/long-keys.md': changeset('minor') }],
    ['an unreleased version', { 'CHANGELOG.md': '# Changelog\n\n## 0.1.0 (unreleased)\n' }],
  ])('publishes nothing where there is %s', (_, files) => {
    project.write({ ...files, 'package.json': { repository: 'https://example.com/owner/name' } })
    const { status, output } = project.run('release.js', 'publish')
    expect([status, output]).toEqual([1, expect.stringContaining('there are changes without a version')])
  })

  it.each([[[]], [['everything']], [['--dry-run', 'twice']]])(
    'says how it is called when it is given %j',
    (args) => {
      const { status, output } = project.run('release.js', ...args)
      expect([status, output]).toEqual([2, expect.stringContaining('version | --dry-run | publish')])
    },
  )
})
