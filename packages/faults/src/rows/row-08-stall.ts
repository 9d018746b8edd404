import { redisStore } from '@sluice/core/redis'
import { type Address, command, pause, startRedis } from '@sluice/harness/redis'
import { type Outage, sitOut, together } from '../outage.js'
import type { Outcome, Row, Watch } from '../row.js'

/** Redis is there and does not answer: stopped, paused by a command, or busy with another script. */
export const row: Row = {
  number: 8,
  fault: 'stall',
  timed: true,
  warnings: ['STORE_DEGRADED', 'STORE_RECOVERED'],
  run: stall,
}

/**
 * Makes Redis stand still in three ways while a service is under load. Passes if all calls are answered in time, and by Redis
 * again soon after. `share` is the part of the full load, 0 to 1.
 */
async function stall(share: number, watch?: Watch): Promise<Outcome> {
  const lastsMs = Math.max(500, 2000 * share)
  const server = await startRedis()
  const outages: Outage[] = [
    { title: 'SIGSTOP', begin: () => server.pause(), end: () => server.resume(), lastsMs },
    ofItself('CLIENT PAUSE', () => command(server, 'CLIENT', 'PAUSE', lastsMs, 'ALL'), lastsMs),
    ofItself('a busy script', () => busy(server, lastsMs), lastsMs),
  ]
  const outcomes: Outcome[] = []
  for (const outage of outages) {
    const store = redisStore({ host: server.host, port: server.port })
    outcomes.push(await sitOut(store, outage, watch))
    await store.close()
  }
  await server.stop()
  return together(outcomes)
}

/** An outage that begins with `start` and ends by itself after so many milliseconds. */
function ofItself(title: string, start: () => Promise<unknown>, lastsMs: number): Outage {
  let over: Promise<unknown>
  const begin = () => {
    over = Promise.all([start(), pause(lastsMs)])
  }
  return { title, begin, end: () => over, lastsMs: 0 }
}

/** Until the time is over, or where scripts do not see it pass, for as many turns as take some seconds. */
const BUSY = `
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + time[2] / 1000
end
local over, turns = now() + ARGV[1], 0
repeat
  turns = turns + 1
until now() >= over or turns == 5000000
`

/** Keeps a server busy with a script for so many milliseconds, in which it answers nothing. */
function busy(server: Address, ms: number): Promise<unknown> {
  return command(server, 'EVAL', BUSY, 0, ms)
}
