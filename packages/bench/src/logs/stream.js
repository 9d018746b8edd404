// A log of 10 GB, which no disk holds: a program writes it into sluice's stdin. npm run verify -- stream [gigabytes]. Memory may grow
// with callers, of whom there are as many in a tenth of it, and not with lines: exit 1 if the whole takes 32 MB more. Needs the build.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { longLog } from './sample.js'

const CALLERS = 20_000
const LINE_BYTES = 167
const MOST_MORE_MB = 32

const gigabytes = Number(process.argv[2] ?? 10)
const folder = mkdtempSync(join(tmpdir(), 'sluice-stream-'))
try {
  const policies = [{ algorithm: 'slidingLog', limit: 100, window: '1m' }]
  writeFileSync(join(folder, 'policies.json'), JSON.stringify({ limiters: { api: { policies } } }))
  for (const args of [['suggest'], ['replay', '-', 'policies.json']]) {
    const tenth = await measure(gigabytes / 10, args)
    const whole = await measure(gigabytes, args)
    const more = whole - tenth
    console.log(`${args[0]}: ${more.toFixed(0)} MB more for ten times the lines, ${MOST_MORE_MB} may be`)
    if (more > MOST_MORE_MB) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true })
}

/**
 * The most memory of a command that reads so much, in MB, as GNU time reports it. Checks that no line was lost.
 * @param {number} size in GB
 * @param {string[]} args
 */
async function measure(size, args) {
  const start = performance.now()
  const command = join(process.cwd(), 'packages/cli/bin/sluice.js')
  const child = spawn('/usr/bin/time', ['-f', '%M', process.execPath, command, ...args, '--json'], {
    cwd: folder,
  })
  const outputs = Promise.all([text(child.stdout), text(child.stderr)])
  const lines = Math.round((size * 1e9) / LINE_BYTES)
  let bytes = 0
  for (const piece of longLog(lines, CALLERS)) {
    bytes += piece.length
    if (!child.stdin.write(piece)) await once(child.stdin, 'drain')
  }
  child.stdin.end()
  const [report, errors] = await outputs
  const { basis } = JSON.parse(report)
  if (basis.lines !== lines || basis.read !== lines)
    throw new Error(`expected ${lines} lines read, got ${basis.lines} and ${basis.read} read`)
  const megabytes = Number(errors.trim().split('\n').at(-1)) / 1000
  const seconds = (performance.now() - start) / 1000
  console.log(
    `${args[0]} of ${(bytes / 1e9).toFixed(2)} GB, ${lines} lines: ${megabytes.toFixed(0)} MB, ${seconds.toFixed(0)} s`,
  )
  return megabytes
}
