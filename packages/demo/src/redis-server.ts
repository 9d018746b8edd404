import { redisStore } from '@sluice/core/redis'
import { startRedis } from '@sluice/harness/redis'
import { setTimeout as sleep } from 'node:timers/promises'
import { CannotRun } from './demo.js'

export interface RedisServer {
  readonly url: string
  /** For the display: a URL may hold a password. */
  readonly what: string
  stop(): Promise<void>
}

/** The Redis that REDIS_URL names, or one that runs for as long as the demo. @throws {CannotRun} */
export async function openRedis(): Promise<RedisServer> {
  const { REDIS_URL } = process.env
  return REDIS_URL ? reached(given(REDIS_URL)) : openOwnRedis()
}

/** One that runs for as long as the demo, whatever REDIS_URL says. @throws {CannotRun} */
export async function openOwnRedis(): Promise<RedisServer> {
  return reached(await own())
}

/**
 * Returns the Redis once it answers; one that does not is stopped.
 * @throws {CannotRun} if it does not answer.
 */
async function reached(redis: RedisServer): Promise<RedisServer> {
  try {
    await reach(redis)
    return redis
  } catch (error) {
    await redis.stop()
    throw error
  }
}

/** The Redis at an address that the user gave. `stop` leaves it running. */
function given(url: string): RedisServer {
  return { url, what: 'the Redis of REDIS_URL', stop: async () => {} }
}

/**
 * Starts a Redis for this demo. Ctrl-C does not reach it, as the processes of a demo still need it while they end.
 * @throws {CannotRun} without a Redis to start.
 */
async function own(): Promise<RedisServer> {
  const server = await startRedis().catch((error: Error) => {
    throw new CannotRun(`${error.message}. Install one, or set REDIS_URL.`)
  })
  return {
    url: `redis://${server.host}:${server.port}`,
    what: `a server on port ${server.port}`,
    stop: () => server.stop(),
  }
}

/**
 * Waits until a Redis answers: one that was just started needs a moment.
 * @throws {CannotRun} if it has not after 3 s.
 */
async function reach({ url, what }: RedisServer): Promise<void> {
  const giveUpAt = Date.now() + PATIENCE_MS
  for (;;) {
    const store = redisStore(url, { lazy: true })
    try {
      return await store.ready()
    } catch (error) {
      const { cause, message } = error as Error
      const why = cause instanceof Error ? cause.message : message
      if (Date.now() >= giveUpAt) throw new CannotRun(`Cannot reach ${what}: ${why}`)
    } finally {
      await store.close()
    }
    await sleep(50)
  }
}

const PATIENCE_MS = 3000
