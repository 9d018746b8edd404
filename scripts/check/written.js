// The files that a check writes, and finds where somebody else has written something different.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { devNull } from 'node:os'
import { dirname } from 'node:path'

/**
 * With `--write` on the command line each file is written; without it each that is otherwise is named with what differs, and the exit code is 1.
 * Returns how many were otherwise.
 * @param {string} subject Of `npm run check`.
 * @param {readonly (readonly [path: string, text: string])[]} files
 */
export function writeOrCompare(subject, files) {
  const others = files.filter(([path, text]) => !existsSync(path) || readFileSync(path, 'utf8') !== text)
  for (const [path, text] of others) {
    if (process.argv.includes('--write')) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, text)
      continue
    }
    const args = ['diff', '--no-index', '--', existsSync(path) ? path : devNull, '-']
    spawnSync('git', args, { input: text, stdio: ['pipe', 'inherit', 'inherit'] })
    console.error(`${path} is not what npm run check -- ${subject} --write makes it`)
    process.exitCode = 1
  }
  return others.length
}
