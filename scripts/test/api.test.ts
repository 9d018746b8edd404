import { spawnSync } from 'node:child_process'
import { existsSync, symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { problemsOf } from '../check/api/change.js'
import { Project } from './project.js'

const SURFACE = 'export const a: number;\n'
const CHANGED = 'export const a: string;\n'
const same = { name: '@sluice/core', path: 'packages/core/api.md', surface: SURFACE, reported: SURFACE }
const changeset = (name: string) => ({ path: '.changeset/one.md', packages: [name], text: 'More.' })

describe('the public surface of a package', () => {
  it('is right where the report says it and nothing changed', () => {
    expect(problemsOf({ ...same, before: SURFACE }, [])).toEqual([])
    expect(problemsOf(same, [])).toEqual([])
  })

  it('is wrong where the report says another', () => {
    expect(problemsOf({ ...same, surface: CHANGED }, [])).toEqual([
      'packages/core/api.md is not the public surface (npm run check -- api --write)',
    ])
  })

  it('needs a changeset of this package where it has changed, or is new', () => {
    const message =
      '@sluice/core: the public surface has changed, and no new changeset names it (npx changeset)'
    for (const before of [CHANGED, '']) {
      const changed = { ...same, before }
      expect(problemsOf(changed, [])).toEqual([message])
      expect(problemsOf(changed, [changeset('@sluice/koa')])).toEqual([message])
      expect(problemsOf(changed, [changeset('@sluice/koa'), changeset('@sluice/core')])).toEqual([])
    }
  })
})

/** API Extractor is installed by `npm run check -- api`. */
const canCheck =
  existsSync('scripts/check/api/node_modules') && spawnSync('git', ['--version']).error === undefined
const describeCheck = canCheck ? describe : describe.skip
describeCheck('npm run check -- api', () => {
  let project: Project
  beforeEach(() => {
    const entry = { require: { types: './dist/index.d.ts', default: './dist/index.js' } }
    project = new Project().write({
      'packages/core/package.json': { name: '@sluice/core', version: '0.1.0', exports: { '.': entry } },
      'packages/core/dist/index.d.ts': 'export declare const a: number;\n',
      '.changeset/config.json': {},
      '.gitignore': 'node_modules\n',
    })
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
  afterEach(() => project.remove())
  const check = (...args: readonly string[]) => project.run('check/api/run.js', '--no-pages', ...args)

  it('passes while nothing changes, wants a report of a change, and then a changeset', () => {
    expect(check()).toMatchObject({ status: 0 })
    project.write({ 'packages/core/dist/index.d.ts': 'export declare const a: string;\n' })
    const { status, output } = check()
    expect(status).toBe(1)
    expect(output).toContain('packages/core/api.md is not the public surface')
    expect(output).toContain('+export const a: string;')
    expect(check('--write').output).toContain('no new changeset names it')
    project.write({ '.changeset/a.md': "---\n'@sluice/core': minor\n---\n\n`a` is a text.\n" })
    expect(check()).toMatchObject({ status: 0 })
  })
})
