import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Project } from './project.js'

/** API Extractor is installed by `npm run check -- api`. */
const canCheck =
  existsSync('scripts/check/api/node_modules') && spawnSync('git', ['--version']).error === undefined
const describeCheck = canCheck ? describe : describe.skip
describeCheck('npm run check -- api', () => {
  const entry = { require: { types: './dist/index.d.ts', default: './dist/index.js' } }
  const project = new Project({
    'packages/core/package.json': { name: '@sluice/core', version: '0.1.0', exports: { '.': entry } },
    'packages/core/dist/index.d.ts': 'export declare const a: number;\n',
    '.changeset/config.json': {},
    '.gitignore': 'node_modules\n',
  })
  beforeEach(() => {
    symlinkSync(resolve('node_modules'), join(project.folder, 'node_modules'))
    expect(check('--write')).toMatchObject({ status: 0 })
    for (const args of [
      ['init', '-qb', 'main'],
      ['add', '.'],
      ['commit', '-qm', 'All'],
    ]) {
      const who = ['-c', 'user.name=a', '-c', 'user.email=a@example.com']
      expect(spawnSync('git', [...who, ...args], { cwd: project.folder }).status).toBe(0)
    }
  })
  const check = (...args: readonly string[]) => project.run('check/api/run.js', '--no-pages', ...args)

  it('passes while nothing changes, wants a report of a change, and then a changeset', () => {
    expect(check()).toMatchObject({ status: 0 })
    project.write({ 'packages/core/dist/index.d.ts': 'export declare const a: string;\n' })
    const { status, output } = check()
    expect(status).toBe(1)
    expect(output).toContain('packages/core/api.md is not what npm run check -- api --write makes it')
    expect(output).toContain('+export const a: string;')
    const written = check('--write')
    expect([written.status, written.output]).toEqual([
      1,
      expect.stringContaining('@sluice/core: the public surface has changed, and no new changeset names it'),
    ])
    project.write({ '.changeset/a.md': "---\n'@sluice/koa': minor\n---\n\n`a` is a text.\n" })
    expect(check()).toMatchObject({ status: 1 })
    project.write({ '.changeset/a.md': "---\n'@sluice/core': minor\n---\n\n`a` is a text.\n" })
    expect(check()).toMatchObject({ status: 0 })
  })

  it('wants a changeset of a package that is new', () => {
    const exports = { '.': { require: { types: './index.d.ts', default: './index.js' } } }
    project.write({
      'packages/koa/package.json': { name: '@sluice/koa', version: '0.1.0', exports },
      'packages/koa/index.d.ts': 'export declare const a: number;\n',
    })
    const { status, output } = check('--write')
    expect([status, output]).toEqual([1, expect.stringContaining('@sluice/koa: the public surface has')])
    expect(output).not.toContain('@sluice/core: the')
    project.write({ '.changeset/a.md': "---\n'@sluice/koa': minor\n---\n\nIt is there.\n" })
    expect(check()).toMatchObject({ status: 0 })
  })
})
