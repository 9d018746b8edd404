// The output of scripts of queues: when their jobs start.

import { setImmediate as turn } from 'node:timers/promises'
import { traffic } from './applications.js'

/** @param {import('@sinonjs/fake-timers').Clock} clock */
export function queues(clock) {
  const began = clock.now

  /** The result of a promise, or 'refused'; time goes on until it has settled. @param {PromiseLike<unknown>} promise */
  async function done(promise) {
    /** @type {unknown} */
    let result = PENDING
    Promise.resolve(promise).then(
      (value) => (result = value),
      () => (result = 'refused'),
    )
    for (let i = 0; i < MOST_STEPS && result === PENDING; i++) {
      await clock.tickAsync(0)
      const wasBusy = traffic.onTheWay > 0
      for (let turns = 0; turns < 10 && result === PENDING; turns++) await turn()
      if (result !== PENDING) break
      // Without a timer it waits for a connection, which has a time of its own.
      if (!wasBusy && traffic.onTheWay === 0 && clock.countTimers() > 0) await clock.nextAsync()
      else await new Promise((resolve) => realTimeout(resolve, 1))
    }
    return result === PENDING ? 'pending' : result
  }

  /**
   * The milliseconds, in tens, after which each of `n` jobs starts that are given to `run` at once; 'refused' for those that never do.
   * @param {number} n
   * @param {(job: () => Promise<number>, i: number) => unknown} run
   * @param {number} ms Each job takes.
   */
  async function starts(n, run, ms = 0) {
    const asked = clock.now
    /** @type {unknown[]} */
    const at = Array.from({ length: n }, () => 'never')
    const jobs = at.map((_, i) => {
      const job = async () => {
        at[i] = tens(clock.now - asked)
        if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
        return i
      }
      return Promise.resolve(run(job, i)).catch(() => void (at[i] = at[i] === 'never' ? 'refused' : at[i]))
    })
    await done(Promise.all(jobs))
    return at
  }

  return {
    done,
    starts,
    /** Whether a call was allowed: some packages reject a promise, others say so. @param {Promise<any>} call */
    ok: (call) =>
      call.then(
        (result) => ((result?.allowed ?? result?.success ?? true) ? 'allowed' : 'denied'),
        () => 'denied',
      ),
    /** Milliseconds since the script began, in tens. */
    elapsed: () => tens(clock.now - began),
  }
}

/** Some packages take a timer of 0 ms, which counts 1 here, for each step. @param {number} ms */
const tens = (ms) => Math.round(ms / 10) * 10

const PENDING = Symbol('pending')
const MOST_STEPS = 1000
const realTimeout = setTimeout
