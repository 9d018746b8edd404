// What tests, checks and measurements need before they run.
import { ensureRedis } from './ensure/redis.js'
import { npm } from './npm.js'

/** `build`: the packages as they are published. `redis`: a program that servers are started from. @typedef {'build' | 'redis'} Need */

/**
 * Ends the process where a need cannot be met, having said why.
 * @param {readonly Need[]} needs
 */
export function prepare(needs) {
  for (const need of needs) {
    if (need === 'build') build()
    else demandRedis()
  }
}

function build() {
  const status = npm(['run', '--silent', 'build'])
  if (status !== 0) process.exit(status)
}

function demandRedis() {
  const missing = ensureRedis()
  if (!missing) return
  console.error(`This starts a Redis of its own, but ${missing}`)
  process.exit(1)
}
