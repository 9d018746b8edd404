// A copy of the sources with one algorithm more than there are: the files that CONTRIBUTING names under "Adding an algorithm".
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'

const PARTS = 'scripts/test/further-algorithm'

/** Where the parts of the algorithm lie. */
const ADDED = {
  'packages/core/src/algorithms/wide-window.ts': 'wide-window.ts',
  'lua/wide-window.lua': 'wide-window.lua',
  'packages/testing/src/conformance/models/wide-window.ts': 'model.ts',
  'packages/core/test/algorithms/wide-window.test.ts': 'table.ts',
  '.changeset/wide-window.md': 'changeset.md',
}

/** The lists, each with a line before which it gets another. @type {Readonly<Record<string, readonly (readonly [before: string, line: string])[]>>} */
const EDITED = {
  'packages/core/src/algorithms/index.ts': [
    ["export * from './gcra.js'", "export * from './wide-window.js'"],
  ],
  'packages/core/src/stores/authoring.ts': [
    ['/** The factories of all algorithms', "import { wideWindow } from '../algorithms/index.js'"],
    ['  fixedWindow,\n', '  wideWindow,'],
  ],
  'packages/testing/src/conformance/models/index.ts': [
    ['import type { Model }', "import { model as wideWindow } from './wide-window.js'"],
    ['  fixedWindow,\n', '  wideWindow,'],
  ],
  'docs/algorithms.md': [
    ['## gcra', '## wideWindow\n\nAt most `limit` in each two or three windows together.\n'],
  ],
}

/** The files that are added and edited. */
export const touched = [...Object.keys(ADDED), ...Object.keys(EDITED)]

/** Makes the copy in a folder of its own. @returns {string} */
export function copyWithOneMore() {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-further-'))
  const isSource = (/** @type {string} */ path) => !['node_modules', 'dist', 'api'].includes(basename(path))
  const copied = ['docs', 'examples', 'lua', 'packages', 'scripts', 'site/playground']
  for (const path of [...copied, 'package.json', 'jest.config.js', 'tsconfig.base.json'])
    cpSync(path, join(folder, path), { recursive: true, filter: isSource })
  // What is installed is found there; a cache belongs to each folder.
  mkdirSync(join(folder, 'node_modules'))
  for (const name of readdirSync('node_modules'))
    if (name !== '.cache') symlinkSync(resolve('node_modules', name), join(folder, 'node_modules', name))
  for (const [path, part] of Object.entries(ADDED)) cpSync(join(PARTS, part), join(folder, path))
  for (const [path, lines] of Object.entries(EDITED)) {
    let text = readFileSync(join(folder, path), 'utf8')
    for (const [before, line] of lines) {
      if (!text.includes(before)) throw new Error(`${path} has no '${before}'`)
      text = text.replace(before, () => `${line}\n${before}`)
    }
    writeFileSync(join(folder, path), text)
  }
  run(folder, 'scripts/build/embed-lua.js')
  return folder
}

/** The sources and tests that are compiled in the copy. */
const COMPILED = ['core', 'testing', 'policies', 'cli', 'machine', 'http', 'demo', 'faults']

/** Compiles the copy, with the packages in it in place of those that are installed. @param {string} folder */
export function compile(folder) {
  const paths = {
    '@sluice/core/internal': ['./packages/core/src/internal.ts'],
    '@sluice/core/redis': ['./packages/core/src/stores/redis/index.ts'],
    '@sluice/core/store': ['./packages/core/src/stores/authoring.ts'],
    '@sluice/testing/internal': ['./packages/testing/src/conformance/index.ts'],
    '@sluice/harness/*': ['./packages/harness/src/*/index.ts'],
    '@sluice/examples/*': ['./examples/*'],
    '@sluice/*': ['./packages/*/src/index.ts'],
  }
  const own = { composite: false, incremental: false, declaration: false, noEmit: true }
  const config = {
    extends: './tsconfig.base.json',
    compilerOptions: { ...own, types: ['node', 'jest'], paths },
    include: [...COMPILED.map((name) => `packages/${name}/src`), 'packages/core/test/algorithms', FURTHER],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  run(folder, 'node_modules/typescript/bin/tsc', '-p', '.')
}

const FURTHER = 'packages/testing/test/further'

/** Runs a program of Node in the copy, and returns what it prints. @param {string} folder @param {...string} args @throws {Error} with its output, if it fails. */
export function run(folder, ...args) {
  // As many runs as the test says, whatever those of the tests around it are.
  const { CONFORMANCE_RUNS: _, ...env } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8', env })
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}:\n${stdout}${stderr}`)
  return stdout + stderr
}

/** Puts tests of the parts into the copy. @param {string} folder @param {readonly string[]} files */
export function addTests(folder, files) {
  for (const file of files) {
    const path = join(folder, FURTHER, file.replace('.ts', '.test.ts'))
    mkdirSync(dirname(path), { recursive: true })
    cpSync(join(PARTS, file), path)
  }
}

/** @param {string} folder */
export const removeCopy = (folder) => rmSync(folder, { recursive: true, force: true })
