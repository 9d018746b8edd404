import type { Answer, Keyspace, Policy, Store } from '@sluice/core'
import { type DenialCacheBounds, guard, type Report } from '@sluice/core/store'
import { isOptional } from './remote-store.js'

/** The events of a simulated time, in microseconds. */
export class Timeline {
  #now = 1_767_225_600_000_000 // 2026-01-01, a multiple of a day
  readonly #events: Event[] = []
  readonly #awaited = new Set<Promise<void>>()

  readonly now = (): number => this.#now

  /** Does something in so many microseconds of the simulated time. */
  after(us: number, act: () => void): void {
    this.#events.push({ at: this.#now + us, act })
  }

  /** Makes the simulated time stand still until this work is done, however long a real server takes for it. */
  await(work: Promise<void>): void {
    this.#awaited.add(work)
    void work.then(() => this.#awaited.delete(work))
  }

  /** Carries out all events in order of time, until none is left. What promises do because of one is done before the next. */
  async run(): Promise<void> {
    for (;;) {
      const next = this.#earliest()
      if (this.#awaited.size > 0 && !this.#isDue(next)) await Promise.all(this.#awaited)
      else if (this.#events.length === 0) return
      else this.#begin(next)
      await settled()
    }
  }

  /** The index of the event that comes first; 0 without any. */
  #earliest(): number {
    let earliest = 0
    for (let i = 1; i < this.#events.length; i++) {
      if (this.#events[i]!.at < this.#events[earliest]!.at) earliest = i
    }
    return earliest
  }

  /** Whether there is an event of this index, and its instant has come. */
  #isDue(next: number): boolean {
    const event = this.#events[next]
    return event !== undefined && event.at <= this.#now
  }

  /** Moves the time on to the instant of an event, removes it, and carries it out. */
  #begin(next: number): void {
    const [{ at, act }] = this.#events.splice(next, 1) as [Event]
    this.#now = Math.max(this.#now, at)
    act()
  }
}

interface Event {
  readonly at: number
  readonly act: () => void
}

/** Resolves when all that promises can do now is done. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The way of one process to a store that it shares with others: calls arrive later, and answers come later still. */
export class SlowStore implements Store {
  /** Costs of calls that arrived, in order. */
  readonly consumed: number[] = []
  /** Its answers, and the costs that they are for. */
  readonly answers = new WeakMap<Answer, number>()
  readonly guard = guard
  readonly denialCache?: DenialCacheBounds
  readonly now: () => number
  readonly #server: Store
  readonly #timeline: Timeline
  readonly #delay: () => number

  constructor(server: Store, timeline: Timeline, delay: () => number) {
    this.#server = server
    this.#timeline = timeline
    this.#delay = delay
    this.now = timeline.now
    if (server.denialCache) this.denialCache = server.denialCache
  }

  /** The keyspace of the shared store, whose calls and answers take the delay to travel. Notes the cost of each `consume`. */
  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const state = this.#server.keyspace(name, policies, report)
    return new Proxy(state, {
      get: (_, operation: keyof Keyspace) => {
        if (operation === 'policies' || operation === 'penalty' || operation === 'answersAtOnce')
          return state[operation]
        if (isOptional(operation)) return undefined
        const act = (state[operation] as (...args: unknown[]) => unknown).bind(state)
        return (...args: unknown[]) =>
          this.#travel(async () => {
            if (operation !== 'decide' || args[0] !== 'consume') return act(...args)
            const cost = args[2] as number
            this.consumed.push(cost)
            const answer = (await act(...args)) as Answer
            this.answers.set(answer, cost)
            return answer
          })
      },
    })
  }

  /** Does nothing: other processes still use the shared store. */
  close(): void {}

  /** Carries out a call after one delay, and returns its answer after another. The simulated time stands still while the store works. */
  #travel(act: () => Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const arrive = () =>
        act().then((answer) => this.#timeline.after(this.#delay(), () => resolve(answer)), reject)
      this.#timeline.after(this.#delay(), () => this.#timeline.await(arrive()))
    })
  }
}
