import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { onSources } from '../../subjects.js'

/** Under node_modules, so that packages are found from there and no other tool looks into it. */
const FOLDER = 'node_modules/.cache/sabotage'
/** Rows of which a tenth says too little: of 8 and 13 about the slowest call, of 43 as so little fits into the system's buffers. */
const WHOLE = new Set([8, 13, 43])
/** Milliseconds for one row. */
const LONGEST_MS = 90_000

/** The outcome of a row: the line that it prints, or why there is none. @typedef {{ pass: boolean, figure: string }} Outcome */

/** A copy of the sources, of which processes of a fleet and Redis's scripts are made too; nothing of it is in use. */
export function copySources() {
  removeCopy()
  const isSource = (/** @type {string} */ path) => !['node_modules', 'dist'].includes(basename(path))
  // Row 17 reads the user of least privilege from docs.
  for (const path of ['package.json', 'docs', 'lua', 'packages', 'scripts'])
    cpSync(path, join(FOLDER, path), { recursive: true, filter: isSource })
  mkdirSync(join(FOLDER, 'node_modules'))
  for (const name of readdirSync('packages')) {
    const modules = `packages/${name}/node_modules`
    if (existsSync(modules)) symlinkSync(resolve(modules), join(FOLDER, modules))
  }
}

export function removeCopy() {
  rmSync(FOLDER, { recursive: true, force: true })
}

/**
 * Breaks a mechanism in the copy; call what this returns to mend it.
 * @param {import('./mistakes.js').Mistake} mistake
 */
export function breakIt({ file, text, broken }) {
  const source = readFileSync(join(FOLDER, file), 'utf8')
  write(file, source.split(text).join(broken))
  return () => write(file, source)
}

/** @param {string} file @param {string} source */
function write(file, source) {
  writeFileSync(join(FOLDER, file), source)
  if (!file.startsWith('lua/')) return
  const embedding = ['scripts/build/embed-lua.js']
  const { status } = spawnSync(process.execPath, embedding, { cwd: FOLDER, stdio: 'inherit' })
  if (status !== 0) throw new Error(`embed-lua.js ended with ${status}`)
}

/**
 * Runs a row on the copy, under a tenth of the load where no times are asserted.
 * @param {number} row
 * @returns {Promise<Outcome>}
 */
export async function runRow(row) {
  const child = spawn(process.execPath, [...onSources, 'packages/faults/src/run.ts', String(row)], {
    cwd: FOLDER,
    env: { ...process.env, FAULTS_SHARE: WHOLE.has(row) ? '1' : '0.1' },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LONGEST_MS,
    killSignal: 'SIGKILL',
  })
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const [, verdict, figure = ''] = /^(pass|FAIL) .*? s {2}(.*)$/m.exec(output) ?? []
  if (figure.startsWith('ReferenceError: ')) throw new Error(`a name in the mistake is gone: ${figure}`)
  if (verdict) return { pass: verdict === 'pass', figure }
  if (child.signalCode) return { pass: false, figure: `ended by its time limit of ${LONGEST_MS / 1000} s` }
  throw new Error(`row ${row} said nothing:\n${errors}`)
}
