import { readFileSync } from 'node:fs'
import { addTests, compile, copyWithOneMore, removeCopy, run, touched } from './further-algorithm/copy.js'

/*
 * One algorithm more than there are, made of the files that CONTRIBUTING names and of nothing else, in a copy of the sources. What
 * knows algorithms is asked about it there: scripts/test/further-algorithm has its parts and these tests.
 */

const DOCUMENT = readFileSync('CONTRIBUTING.md', 'utf8')

let folder: string
beforeAll(() => {
  folder = copyWithOneMore()
  addTests(folder, ['kit.ts', 'texts.ts'])
})
afterAll(() => removeCopy(folder))

describe('one algorithm more', () => {
  it('touches the files that CONTRIBUTING names', () => {
    const [, section = ''] = /\n## Adding an algorithm\n([^]*?)\n## /.exec(DOCUMENT) ?? []
    const named = [...section.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, path = '']) => path)
    expect(named.map((path) => path.replace('<name>', 'wide-window')).toSorted()).toEqual(touched.toSorted())
  })

  it('compiles', () => compile(folder))

  it('passes the kit and its table, in memory and in Lua, and is right in every text about it', () => {
    const tests = [
      'packages/testing/test/further',
      'packages/core/test/algorithms/',
      'packages/core/test/lua/tables',
    ]
    const names = ['--testNamePattern', 'wide.window|further|a policy']
    const printed = run(folder, 'node_modules/jest/bin/jest.js', ...tests, ...names)
    // All laws on both shapes, in both stores.
    expect(Number(/^Tests: .*?(\d+) passed/m.exec(printed)?.[1])).toBeGreaterThan(350)
  }, 60_000)
})
