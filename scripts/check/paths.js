// npm run check -- paths [FILE...]: nothing in the repository keeps it from being checked out, built and tested on Windows: no file
// names that it does not have, no folders of Unix, no signals that it lacks, no programs that only a shell finds. What runs on Unix
// alone is listed with the reason. Files choose those to look at. Exit 1 when something is wrong.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** Names of files, and why they are for Unix. */
const UNIX_ALONE = new Map([
  ['server-process.ts', 'servers of Redis, which is not on Windows'],
  ['redis-server.ts', 'servers of Redis'],
  ['guard.ts', 'watches servers of Redis'],
  ['report.js', 'names the signals that a benchmark sent to servers of Redis'],
  ['row-08-stall.ts', 'names the signal that stops a server of Redis'],
  ['lua-redis.ts', 'Lua behind named pipes; skipped where there is no lua5.1'],
  ['own-time.ts', 'asks Linux how long a thread ran, and does without elsewhere'],
  ['fleet.ts', 'stops processes of the fault matrix'],
  ['row-35-machine.ts', 'stops the server of a machine, in the fault matrix'],
  ['store.test.ts', 'names folders in options, and one behind a symbolic link'],
  ['paths.test.ts', 'holds what is to be found'],
  ['builds.js', 'compares builds of two commits'],
])

/** What to look for in code, and what to use instead. @type {[RegExp, string][]} */
const IN_CODE = [
  [
    /['"`]\/(?:tmp|var|usr|etc|home|dev|proc)\b/,
    'a folder of Unix: os.tmpdir() and node:path know the right one',
  ],
  [/\bSIG(?:STOP|CONT|TSTP|HUP|QUIT|USR[12]|PIPE|ALRM|CHLD|WINCH)\b/, 'a signal that Windows lacks'],
  [
    /\b(?:spawn|spawnSync|execFile|execFileSync)\(\s*['"](?:npm|npx)['"]/,
    'a batch file on Windows: scripts/npm.js',
  ],
  [/\b(?:spawn|spawnSync|execFile|execFileSync)\(\s*['"](?:sh|bash)['"]/, 'a shell of Unix'],
  [/\bimport\.meta\.url\)\.pathname/, 'begins with a slash on Windows: fileURLToPath, import.meta.dirname'],
]

const DEVICES = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i

const chosen = process.argv.slice(2)
const files = chosen.length > 0 ? chosen : allFiles()
/** @type {string[]} */
const problems = []
/** @type {Map<string, string>} */
const byLowerCase = new Map()
const unused = new Set(UNIX_ALONE.keys())
for (const path of files) {
  const why = wrongName(path)
  if (why) problems.push(`${path}: ${why}`)
  if (/\.[cm]?[jt]s$/.test(path) && path !== 'scripts/check/paths.js') problems.push(...wrongCode(path))
}
if (chosen.length === 0) {
  for (const name of unused) problems.push(`scripts/check/paths.js: ${name} need not be listed`)
}
for (const problem of problems) console.error(problem)
console.log(`${files.length} files, ${problems.length} problems`)
process.exitCode = problems.length === 0 ? 0 : 1

/** Those of the next commit: what is ignored stays here. */
function allFiles() {
  const options = ['-z', '--cached', '--others', '--exclude-standard']
  return execFileSync('git', ['ls-files', ...options], { encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
}

/**
 * @param {string} path
 * @returns {string | undefined}
 */
function wrongName(path) {
  const twin = byLowerCase.get(path.toLowerCase())
  byLowerCase.set(path.toLowerCase(), path)
  if (twin) return `differs from ${twin} by upper and lower case alone`
  if (/[<>:"\\|?*\p{Cc}]/u.test(path)) return 'has a character that names have not on Windows'
  const parts = path.split('/')
  if (parts.some((part) => /[. ]$/.test(part))) return 'ends in a dot or a space, which Windows drops'
  if (parts.some((part) => DEVICES.test(part))) return 'is the name of a device on Windows'
  return path.length > 180 ? 'is longer than Windows allows below a folder of usual length' : undefined
}

/**
 * @param {string} path
 * @returns {string[]}
 */
function wrongCode(path) {
  const found = []
  for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
    if (/^\s*(?:\/\/|\/?\*)/.test(line)) continue
    for (const [pattern, why] of IN_CODE) {
      if (pattern.test(line)) found.push(`${path}:${index + 1}: ${why}`)
    }
  }
  if (found.length === 0 || !UNIX_ALONE.has(basename(path))) return found
  unused.delete(basename(path))
  return []
}
