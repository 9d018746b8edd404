// When limits act again. The state of a caller who has used its limit up is copied in Redis to callers of whom the
// service has never heard. A contender that denies one of them knows it from Redis: what is counted in the service's memory would
// let it pass. With each goes a caller who is new to Redis too and must pass, as some deny everybody when Redis is away.
import { Redis } from 'ioredis'

/** Between two pairs, in milliseconds. */
export const EVERY_MS = 50
const MOST_PAIRS = 300

/** A caller's state, with its name in the keys. */
export class Spent {
  #caller
  #entries

  /**
   * @param {string} caller
   * @param {readonly { key: string, bytes: Buffer, ttlMs: number }[]} entries
   */
  constructor(caller, entries) {
    this.#caller = caller
    this.#entries = entries
  }

  /**
   * @param {{ host: string, port: number }} address
   * @param {string} caller
   */
  static of(address, caller) {
    return withRedis(address, async (redis) => {
      const keys = await redis.keys(`*${caller}*`)
      if (keys.length === 0) throw new Error(`there is no key of ${caller} in Redis`)
      const entries = keys.map(async (key) => {
        const [bytes, ttlMs] = await Promise.all([redis.dumpBuffer(key), redis.pttl(key)])
        return { key, bytes, ttlMs }
      })
      return new Spent(caller, await Promise.all(entries))
    })
  }

  /**
   * Gives it to the callers of one recovery, before they are asked for.
   * @param {{ host: string, port: number }} address
   * @param {string} after
   */
  give(address, after) {
    return withRedis(address, async (redis) => {
      const pipeline = redis.pipeline()
      for (let i = 0; i < MOST_PAIRS; i++) {
        for (const { key, bytes, ttlMs } of this.#entries) {
          pipeline.restore(key.replaceAll(this.#caller, spentCaller(after, i)), Math.max(0, ttlMs), bytes)
        }
      }
      for (const [error] of (await pipeline.exec()) ?? []) if (error) throw error
    })
  }
}

/** Begins now, and asks until it is stopped. */
export class Recovery {
  /** Milliseconds until a pair was answered as it must be; undefined where none was. @type {number | undefined} */
  afterMs
  /** Pairs after that one that were not. */
  relapses = 0
  /** Resolves when limits act. */
  acts
  /** @type {() => void} */
  #tell = () => {}
  #began = performance.now()
  #timer
  /** @type {Set<Promise<unknown>>} */
  #asked = new Set()
  #pairs = 0

  /**
   * @param {import('./load.js').Load} load
   * @param {string} after
   */
  constructor(load, after) {
    this.acts = new Promise((resolve) => (this.#tell = () => resolve(undefined)))
    this.#timer = setInterval(() => {
      if (this.#pairs === MOST_PAIRS) return
      const asked = this.#ask(load, after, this.#pairs++)
      this.#asked.add(asked)
      void asked.then(() => this.#asked.delete(asked))
    }, EVERY_MS)
  }

  async stop() {
    clearInterval(this.#timer)
    await Promise.all(this.#asked)
  }

  /**
   * @param {import('./load.js').Load} load
   * @param {string} after
   * @param {number} i
   */
  async #ask(load, after, i) {
    const sentMs = performance.now() - this.#began
    const [spent, fresh] = await Promise.all([load.ask(spentCaller(after, i)), load.ask(`new-${after}-${i}`)])
    const doneMs = performance.now() - this.#began
    if (spent.status === 429 && fresh.status === 200) {
      this.afterMs = Math.min(this.afterMs ?? Infinity, doneMs)
      this.#tell()
    } else if (sentMs > (this.afterMs ?? Infinity)) this.relapses++
  }
}

/**
 * @param {string} after
 * @param {number} i
 */
function spentCaller(after, i) {
  return `spent-${after}-${i}`
}

/**
 * @template T
 * @param {{ host: string, port: number }} address
 * @param {(redis: Redis) => Promise<T>} act
 */
async function withRedis(address, act) {
  const redis = new Redis({ ...address, maxRetriesPerRequest: 0 })
  try {
    return await act(redis)
  } finally {
    redis.disconnect()
  }
}
