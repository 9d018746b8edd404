import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/** A repository in a folder of its own, new for each test of a file, in which the scripts of this one are run. */
export class Project {
  folder = ''

  /** @param files What it holds when a test begins. */
  constructor(files: Readonly<Record<string, string | object>> = {}) {
    beforeEach(() => {
      this.folder = mkdtempSync(join(tmpdir(), 'sluice-scripts-'))
      this.write(files)
    })
    afterEach(() => rmSync(this.folder, { recursive: true, force: true }))
  }

  /** Objects are written as JSON. */
  write(files: Readonly<Record<string, string | object>>): this {
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true })
      writeFileSync(join(this.folder, path), typeof content === 'string' ? content : JSON.stringify(content))
    }
    return this
  }

  has(path: string): boolean {
    return existsSync(join(this.folder, path))
  }

  read(path: string): string {
    return readFileSync(join(this.folder, path), 'utf8')
  }

  /** Runs a program of `scripts`. */
  run(script: string, ...args: readonly string[]): Ran {
    return this.#node(resolve('scripts', script), ...args)
  }

  /** Runs a module that imports one of `scripts` as `own`. */
  evaluate(script: string, code: string): Ran {
    const from = pathToFileURL(resolve('scripts', script)).href
    return this.#node('--input-type=module', '--eval', `import * as own from '${from}'\n${code}`)
  }

  #node(...args: readonly string[]): Ran {
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: this.folder,
      encoding: 'utf8',
      timeout: 60_000,
    })
    return { status, output: stdout + stderr }
  }
}

export interface Ran {
  readonly status: number | null
  readonly output: string
}
