import { createLimiter, type Limiter } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command } from '@sluice/harness/redis'
import { mainShapes } from '@sluice/testing/internal'
import { specOf } from '../every-algorithm.js'
import { startMovedRedis } from '../moved-clock.js'
import { policyOf } from '../policy-spec.js'
import type { Outcome, Row } from '../row.js'

/** Somebody sets the clock of the machine on which Redis runs. */
export const row: Row = { number: 7, fault: "Redis's clock", run: setClock }

const LIMIT = 10
const HOUR_MS = 3_600_000
/** Shorter than what the clock is set by, and longer. */
const WINDOWS = ['1m', '1d'] as const

/**
 * Sets the clock of Redis an hour back and forward under each algorithm. Passes if at most one limit more is admitted, none
 * in a window during which time stands still, and calls pass again after about a window; where time stands still until the clock has caught up, after an hour more. Under a calendar it
 * is set by a day: back admits nothing more, as the window has a stored end, until which time does not stand still.
 */
async function setClock(): Promise<Outcome> {
  const redis = await startMovedRedis()
  if (typeof redis === 'string') return { pass: true, figure: `skipped: ${redis}` }
  const { server, setOffset, stop } = redis
  const store = redisStore({ host: server.host, port: server.port }, { denialCache: false })
  const wrong: string[] = []
  let [cases, mostExtra, longestLock] = [0, 0, 0]
  for (const window of WINDOWS) {
    for (const shape of mainShapes()) {
      const policy = policyOf(specOf(shape, { limit: LIMIT, window }))
      const { calendar, windowMs } = policy
      const byMs = calendar ? 24 * HOUR_MS : HOUR_MS
      for (const jumpMs of [-byMs, byMs]) {
        const options = { deadline: '30s', onStoreError: 'throw' } as const
        const limiter = createLimiter({ name: `clock ${cases++}`, store, policies: [policy], ...options })
        const what = `${policy.shape}, ${jumpMs < 0 ? 'back' : 'forward'}`
        setOffset(0)
        const began = await secondsOf(server)
        if ((await admitted(limiter)) !== LIMIT) wrong.push(`${what}: no ${LIMIT} before`)
        const half = await admitted(limiter, 'half', LIMIT / 2)
        setOffset(jumpMs)
        const moved = ((await secondsOf(server)) - began) * 1000 - jumpMs
        if (Math.abs(moved) > 60_000) wrong.push(`${what}: the clock was not set`)
        const extra = await admitted(limiter)
        const standsStill = jumpMs < 0 && windowMs > HOUR_MS
        if (extra > (standsStill ? 0 : LIMIT)) wrong.push(`${what}: ${extra} more were admitted`)
        const all = half + (await admitted(limiter, 'half'))
        if (standsStill && all !== LIMIT) wrong.push(`${what}: ${all} of ${LIMIT} in one window`)
        const [lockMs, waits] = await untilAdmitted(limiter, (ms) => setOffset(jumpMs + ms))
        if (waits > 1) wrong.push(`${what}: denied again after the wait, ${waits - 1} times`)
        const bar = 1.1 * windowMs + (standsStill ? byMs : 0)
        if (lockMs > bar) wrong.push(`${what}: locked for ${lockMs} ms`)
        mostExtra = Math.max(mostExtra, extra)
        longestLock = Math.max(longestLock, lockMs / windowMs)
      }
    }
  }
  await store.close()
  await stop()
  return {
    pass: wrong.length === 0,
    figure:
      `${cases} times an hour back or forward, under a calendar a day, under windows of ${WINDOWS.join(' and ')}: at most ${mostExtra} more ` +
      `admitted (bar: the burst of ${LIMIT}), usable again after ${longestLock.toFixed(2)} windows at most` +
      `${wrong[0] ? `; ${wrong.length} wrong: ${wrong[0]}` : ''}`,
  }
}

/** The time of a server's clock, in seconds since 1970. */
async function secondsOf(server: { host: string; port: number }): Promise<number> {
  return Number((await command<string[]>(server, 'TIME'))[0])
}

/** How many calls of one key a limiter admits, of three times the limit. */
async function admitted(limiter: Limiter, key = 'k', calls = 3 * LIMIT): Promise<number> {
  let count = 0
  for (let i = 0; i < calls; i++) if ((await limiter.consume(key)).allowed) count++
  return count
}

/** Moves the clock on by the waits in the answers, and returns their sum and number. */
async function untilAdmitted(
  limiter: Limiter,
  moveTo: (ms: number) => void,
): Promise<readonly [ms: number, waits: number]> {
  let waited = 0
  for (let i = 0; i < 10; i++) {
    const { allowed, retryAfterMs } = await limiter.consume('k')
    if (allowed) return [waited, i]
    waited += retryAfterMs
    moveTo(waited)
  }
  return [Infinity, Infinity]
}
