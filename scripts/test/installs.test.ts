import { symlinkSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Project } from './project.js'

const MANIFEST = {
  name: '@sluice/core',
  version: '0.1.0',
  type: 'module',
  exports: {
    '.': {
      import: { types: './index.d.ts', default: './index.js' },
      require: { types: './index.d.cts', default: './index.cjs' },
    },
  },
}

const project = new Project({
  'packages/core/package.json': MANIFEST,
  'packages/core/index.js': 'export const a = 1\n',
  'packages/core/index.cjs': 'exports.a = 1\n',
  'packages/core/index.d.ts': 'export declare const a: number\n',
  'packages/core/index.d.cts': 'export declare const a: number\n',
})
beforeEach(() => symlinkSync(resolve('node_modules'), join(project.folder, 'node_modules')))

const STYLES = [
  'ESM import',
  'CJS require',
  'TypeScript nodenext ESM',
  'TypeScript nodenext CJS',
  'TypeScript bundler',
]

/** The styles that fail, as the line of the package marks them. */
function failing() {
  const { status, output } = project.run('check/installs.js')
  const failed = STYLES.filter((style) => output.includes(`✗ ${style}`))
  expect(status).toBe(failed.length > 0 ? 1 : 0)
  return failed
}

describe('the check of installs', () => {
  it('takes a package that every style can import', () => expect(failing()).toEqual([]))

  it('finds each style that lacks a name, or its type', () => {
    project.write({
      'packages/core/index.cjs': 'exports.b = 1\n',
      'packages/core/index.d.ts': 'export declare const b: number\n',
    })
    expect(failing()).toEqual(['CJS require', 'TypeScript nodenext ESM', 'TypeScript bundler'])
  })
})
