// One contender through an outage: healthy, stopped (SIGSTOP), healthy, killed (SIGKILL), restarted without its data.
import { setTimeout as pause } from 'node:timers/promises'
import { LIMIT } from './contenders.js'
import { Load } from './load.js'
import { Recovery, Spent } from './recovery.js'
import { startService } from './service.js'

/** @typedef {import('@sluice/harness/redis').RedisServer} RedisServer */

const WARM_UP_MS = 2000
const HEALTHY_MS = 2000
const STOPPED_MS = 2000
const KILLED_MS = 3000
const RESTARTED_MS = 4000
/** Requests on their way in a service that keeps up. */
const FEW = 5
/** A contender that needs longer than this for the warm-up, or after the restart, is not waited for. */
const PATIENCE_MS = 10_000

/**
 * @param {string} name
 * @param {RedisServer} redis
 * @param {number} barePort
 * @returns {Promise<import('./report.js').Result>}
 */
export async function sitOut(name, redis, barePort) {
  const service = await startService(name, redis.port)
  const load = new Load(service.port, barePort)
  const began = performance.now()
  /** @type {import('./report.js').Phase[]} */
  const phases = []
  const enter = (/** @type {string} */ title) => phases.push({ title, from: performance.now() })
  try {
    enter('(warm-up)')
    const donor = 'donor'
    for (let i = 0; i < 2 * LIMIT; i++) await load.ask(donor)
    await pause(WARM_UP_MS - (performance.now() - began))
    // Code that runs for the first time is slow: who has a queue by now works it off before it is measured.
    while (load.waiting > FEW && performance.now() - began < PATIENCE_MS) await pause(20)

    enter('healthy')
    const spent = await Spent.of(redis, donor)
    await spent.give(redis, 'stopped')
    await pause(HEALTHY_MS)

    enter('stopped')
    redis.pause()
    await pause(STOPPED_MS)

    enter('resumed')
    redis.resume()
    const resumed = new Recovery(load, 'stopped')
    await pause(HEALTHY_MS)
    await resumed.stop()

    enter('killed')
    await redis.kill()
    await pause(KILLED_MS)

    enter('restarted')
    await redis.restart()
    const restarted = new Recovery(load, 'killed')
    await spent.give(redis, 'killed')
    const patience = pause(PATIENCE_MS, undefined, { ref: false })
    await Promise.race([Promise.all([restarted.acts, pause(RESTARTED_MS)]), patience])
    enter('(end)')
    await restarted.stop()
    await load.stop()
    return {
      name,
      phases,
      answers: load.answers,
      bare: load.bare,
      lateMs: load.lateMs,
      resumedAfterMs: resumed.afterMs,
      restartedAfterMs: restarted.afterMs,
      relapses: resumed.relapses + restarted.relapses,
      ended: service.ended(),
    }
  } finally {
    await load.stop()
    await service.stop()
  }
}
