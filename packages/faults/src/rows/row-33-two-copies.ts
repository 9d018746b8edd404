import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { startRedis } from '@sluice/harness/redis'
import { installCopies } from '../copies.js'
import type { Outcome, Row } from '../row.js'
import type { Seen } from '../workers/two-copies/program.js'

/**
 * One process holds the ESM build, the CommonJS build and a nested copy of another version. What one of them made is
 * given to another, and has to work as its own does; what was made under another contract is refused at set-up.
 */
export const row: Row = { number: 33, fault: 'two copies of core', run: meet }

/**
 * Runs a program in which copies of core meet. Passes if those of one contract share limits, and those of another are refused with an
 * error.
 */
async function meet(): Promise<Outcome> {
  const [copies, redis] = await Promise.all([
    installCopies('packages/faults/src/workers/two-copies'),
    startRedis(),
  ])
  try {
    const program = join(copies.folder, 'program.js')
    const child = spawn(process.execPath, [program, redis.host, String(redis.port)], { timeout: 90_000 })
    const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    if (output === '') throw new Error(errors)
    const { checks, wrong } = JSON.parse(output) as Seen
    const first = wrong.length === 0 ? '' : `; ${wrong.length} wrong: ${wrong.slice(0, 3).join('; ')}`
    const parts = Object.entries(checks).map(([what, count]) => `${count} ${what}`)
    return { pass: wrong.length === 0, figure: `${parts.join(', ')}${first}` }
  } finally {
    copies.remove()
    await redis.stop()
  }
}
