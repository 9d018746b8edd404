// How soon sluice starts, and how fast and in how much memory it reads logs: npm run bench -- logs [lines] [callers]. Beside
// goaccess, if it is installed, on a tenth of the lines. Needs the build.
import { spawnSync } from 'node:child_process'
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { longLog } from './sample.js'

const [lines = 5_000_000, callers = 1_000_000] = process.argv.slice(2).map(Number)
const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
try {
  await write('long.log', lines, callers)
  await write('short.log', lines / 10, callers / 10)
  for (const algorithm of ['slidingLog', 'gcra']) {
    const policies = [{ algorithm, limit: 100, window: '1m' }]
    writeFileSync(join(folder, `${algorithm}.json`), JSON.stringify({ limiters: { api: { policies } } }))
  }
  const command = join(process.cwd(), 'packages/cli/bin/sluice.js')
  const starts = Array.from({ length: 15 }, () => secondsOf(command, '--version') / secondsOf('-e', '0'))
  const start = starts.toSorted((one, other) => one - other)[7] ?? NaN
  console.log(`start                ${start.toFixed(2)} x node -e 0, the median of 15 turns`)
  measure('suggest', lines, process.execPath, command, 'suggest', 'long.log', '--json')
  for (const algorithm of ['slidingLog', 'gcra'])
    measure(
      `replay ${algorithm}`,
      lines,
      process.execPath,
      command,
      'replay',
      'long.log',
      `${algorithm}.json`,
      '--json',
    )
  measure('suggest, a tenth', lines / 10, process.execPath, command, 'suggest', 'short.log', '--json')
  if (spawnSync('goaccess', ['--version']).error) console.log('goaccess is not installed')
  else
    measure(
      'goaccess, a tenth',
      lines / 10,
      'goaccess',
      'short.log',
      '--log-format=COMBINED',
      '-o',
      'out.json',
    )
} finally {
  rmSync(folder, { recursive: true })
}

/**
 * @param {string} name
 * @param {number} lines
 * @param {number} callers
 */
async function write(name, lines, callers) {
  const file = createWriteStream(join(folder, name))
  for (const piece of longLog(lines, callers)) if (!file.write(piece)) await once(file, 'drain')
  await once(file.end(), 'finish')
}

/** @param {string[]} args */
function secondsOf(...args) {
  const start = performance.now()
  spawnSync(process.execPath, args, { stdio: 'ignore' })
  return (performance.now() - start) / 1000
}

/**
 * Prints time, lines a second and the most memory, as GNU time reports them.
 * @param {string} title
 * @param {number} lines
 * @param {string} program
 * @param {string[]} args
 */
function measure(title, lines, program, ...args) {
  const start = performance.now()
  const { stderr, status } = spawnSync('/usr/bin/time', ['-f', '%U %M', program, ...args], {
    cwd: folder,
    encoding: 'utf8',
  })
  const seconds = (performance.now() - start) / 1000
  const [user = NaN, kilobytes = NaN] = (stderr.trim().split('\n').at(-1) ?? '').split(' ').map(Number)
  const rate = `${Math.round(lines / seconds / 1000)} k lines/s`
  const figures = `${seconds.toFixed(1)} s, ${user.toFixed(1)} s of CPU, ${rate}, ${Math.round(kilobytes / 1000)} MB`
  console.log(`${title.padEnd(20)} ${status === 0 ? figures : `failed: ${stderr}`}`)
}
