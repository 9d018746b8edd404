import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/*
 * The sources of core as they are, as they were in another commit, and as they may become: for processes of two versions
 * at a time. Copies lie below node_modules, where packages are found.
 */

/** Where sources lie: what holds `packages/core/src`. */
export interface Sources {
  readonly what: string
  readonly folder: string
}

const FORMAT = 'packages/core/src/stores/redis/key.ts'
/** Where commits before it have the line. */
const FORMER = 'packages/core/src/stores/redis/keyspace.ts'
const FORMAT_LINE = /export const STATE_FORMAT = (\d+)/
/** So many commits are looked through. */
const FAR_BACK = 100

export class Builds {
  readonly present: Sources = { what: 'this build', folder: resolve('.') }
  readonly #folder: string

  constructor() {
    mkdirSync('node_modules/.cache', { recursive: true })
    this.#folder = mkdtempSync(resolve('node_modules/.cache/builds-'))
  }

  /** The newest commit before this one with the format of this one; undefined where there is no history. */
  lastOfThisFormat(): Sources | undefined {
    const format = formatIn(readFileSync(FORMAT, 'utf8'))
    const commits = git('rev-list', `--max-count=${FAR_BACK}`, 'HEAD~1')?.toString().trim().split('\n') ?? []
    const commit = commits.find((each) => {
      const source = git('show', `${each}:${FORMAT}`) ?? git('show', `${each}:${FORMER}`)
      return formatIn(source?.toString() ?? '') === format
    })
    return commit === undefined ? undefined : this.at(commit)
  }

  /** The sources of a commit of this repository, taken out of git; undefined where there is no such commit. */
  at(commit: string): Sources | undefined {
    const archive = git('archive', commit, 'packages/core/src', 'packages/core/package.json')
    if (!archive) return undefined
    const folder = join(this.#folder, commit)
    mkdirSync(folder)
    execFileSync('tar', ['-x', '-C', folder], { input: archive })
    return { what: `the build of ${commit.slice(0, 7)}`, folder }
  }

  /** These sources, with two fields of the header in each other's place and therefore another format. */
  ofAnotherFormat(): Sources {
    const folder = join(this.#folder, 'another-format')
    for (const path of [
      'package.json',
      'scripts/build/embed-lua.js',
      'scripts/build/lua-modules.js',
      'lua',
      'packages/core/src',
      'packages/core/package.json',
    ]) {
      cpSync(path, join(folder, path), { recursive: true })
    }
    for (const [file, edits] of Object.entries(SWAPPED)) edit(join(folder, file), edits)
    const format = formatIn(readFileSync(FORMAT, 'utf8'))!
    edit(join(folder, FORMAT), [[`STATE_FORMAT = ${format}`, `STATE_FORMAT = ${format + 1}`]])
    execFileSync(process.execPath, ['scripts/build/embed-lua.js'], { cwd: folder })
    return { what: 'a build of another format', folder }
  }

  /** Removes the folder of all builds. */
  remove(): void {
    rmSync(this.#folder, { recursive: true })
  }
}

/** Where the scripts read and write `expires` and `restricted`, and the same with the two in each other's place. */
const SWAPPED = {
  'lua/engine.lua': [
    [
      "expires, restricted, written, @{all_cells}, version = unpack('<dddd",
      "restricted, expires, written, @{all_cells}, version = unpack('<dddd",
    ],
    ["ttl and pack('<d', expires)", "ttl and pack('<dd', restricted, expires)"],
    [
      "pack('<dddd@{cell_formats}d', born, expires, restricted,",
      "pack('<dddd@{cell_formats}d', born, restricted, expires,",
    ],
  ],
  'lua/hot.lua': [
    [
      "expires, restricted, written, @{all_cells} = unpack('<ddd",
      "restricted, expires, written, @{all_cells} = unpack('<ddd",
    ],
  ],
} as const

/** Replaces texts in a file. Throws where one does not stand in it exactly once. */
function edit(file: string, edits: readonly (readonly [text: string, other: string])[]): void {
  let source = readFileSync(file, 'utf8')
  for (const [text, other] of edits) {
    if (source.split(text).length !== 2) throw new Error(`${file} must hold ${JSON.stringify(text)} once`)
    source = source.replace(text, () => other)
  }
  writeFileSync(file, source)
}

/** The number of the format of state that a source names; undefined where it names none. */
function formatIn(source: string): number | undefined {
  const [, format] = FORMAT_LINE.exec(source) ?? []
  return format === undefined ? undefined : Number(format)
}

/** The output of git; undefined where it fails. */
function git(...args: readonly string[]): Buffer | undefined {
  try {
    const ask = (folder: string, ...rest: readonly string[]) =>
      execFileSync('git', ['-C', folder, ...rest], {
        stdio: ['ignore', 'pipe', 'ignore'],
        maxBuffer: 2 ** 28,
      })
    return ask(ask('.', 'rev-parse', '--show-toplevel').toString().trim(), ...args)
  } catch {
    return undefined
  }
}
