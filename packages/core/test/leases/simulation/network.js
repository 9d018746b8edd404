import { guard } from '@sluice/core/store'
/** @import { Answer, Keyspace, Store } from '@sluice/core' */

/** @typedef {{ at: number, act: () => void }} Event */

/** Simulated time in microseconds, and what happens at which moment of it. A binary heap: the next event is first. */
export class Timeline {
  now = 1_767_225_600_000_000 // 2026-01-01
  /** @type {Event[]} */
  #events = []

  /** When the next event is due; Infinity when there is none. */
  get next() {
    return this.#events[0]?.at ?? Infinity
  }

  /**
   * @param {number} us
   * @param {() => void} act
   */
  after(us, act) {
    const events = this.#events
    const event = { at: this.now + us, act }
    let i = events.push(event) - 1
    for (let up = (i - 1) >> 1; i > 0 && at(events, up).at > event.at; up = (i - 1) >> 1) {
      events[i] = at(events, up)
      i = up
    }
    events[i] = event
  }

  /** Moves to the next event and lets it happen. */
  step() {
    const events = this.#events
    const first = at(events, 0)
    const last = /** @type {Event} */ (events.pop())
    let i = 0
    for (let down = 1; down < events.length; down = 2 * i + 1) {
      if (down + 1 < events.length && at(events, down + 1).at < at(events, down).at) down++
      if (at(events, down).at >= last.at) break
      events[i] = at(events, down)
      i = down
    }
    if (events.length > 0) events[i] = last
    this.now = first.at
    first.act()
  }
}

/**
 * @param {readonly Event[]} events
 * @param {number} i
 */
function at(events, i) {
  return /** @type {Event} */ (events[i])
}

/**
 * The way of one process to the store that all share: a call arrives after `delay()` microseconds, and its answer after as
 * many again.
 * @param {Store} server
 * @param {Timeline} timeline
 * @param {() => number} delay
 * @param {{ calls: number, booked: Map<string, number> }} count of what arrived
 * @returns {Store}
 */
export function remote(server, timeline, delay, count) {
  return {
    guard,
    keyspace(name, policies, report) {
      const state = server.keyspace(name, policies, report)
      /** @type {Keyspace['decide']} */
      const decide = (ask, key, cost, maxWait) =>
        new Promise((resolve) =>
          timeline.after(delay(), () => {
            const answer = /** @type {Answer} */ (state.decide(ask, key, cost, maxWait))
            count.calls++
            if (answer.reason === undefined) count.booked.set(key, (count.booked.get(key) ?? 0) + cost)
            timeline.after(delay(), () => resolve(answer))
          }),
        )
      return /** @type {Keyspace} */ (/** @type {unknown} */ ({ policies, decide }))
    },
    denialCache: { maxAge: 1_000_000, maxKeys: 10_000 },
    now: () => timeline.now,
    close() {},
  }
}
