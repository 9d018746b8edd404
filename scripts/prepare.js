// What tests, checks and measurements need before they run.
import { spawnSync } from 'node:child_process'

/** `build`: the packages as they are published. `redis`: a program that servers are started from. @typedef {'build' | 'redis'} Need */

/** @type {Record<Need, readonly [command: string, ...args: string[]]>} */
const COMMANDS = {
  build: ['npm', 'run', '--silent', 'build'],
  redis: [process.execPath, 'scripts/ensure/redis.js'],
}

/**
 * Ends the process where a need cannot be met; the command that failed says why.
 * @param {readonly Need[]} needs
 */
export function prepare(needs) {
  for (const need of needs) {
    const [command, ...args] = COMMANDS[need]
    const { status } = spawnSync(command, args, { stdio: 'inherit' })
    if (status !== 0) process.exit(status ?? 1)
  }
}
