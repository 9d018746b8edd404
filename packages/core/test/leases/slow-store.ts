import type { Answer, Keyspace, Policy, Store } from '../../src/index.js'
import type { Report } from '../../src/stores/store.js'

/** What happens at which moment of a simulated time, in microseconds. */
export class Timeline {
  #now = 1_767_225_600_000_000 // 2026-01-01, a multiple of a day
  readonly #events: { readonly at: number; readonly act: () => void }[] = []

  readonly now = (): number => this.#now

  after(us: number, act: () => void): void {
    this.#events.push({ at: this.#now + us, act })
  }

  /** Until nothing is left to happen. What promises do because of an event is done before the next one. */
  async run(): Promise<void> {
    while (this.#events.length > 0) {
      let next = 0
      for (let i = 1; i < this.#events.length; i++) {
        if (this.#events[i]!.at < this.#events[next]!.at) next = i
      }
      const [{ at, act }] = this.#events.splice(next, 1) as [{ at: number; act: () => void }]
      this.#now = Math.max(this.#now, at)
      act()
      await settled()
    }
  }
}

/** Resolves when all that promises can do now is done. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The way of one process to a store that it shares with others: calls arrive later, and answers come later still. */
export class SlowStore implements Store {
  /** Costs of calls that arrived, in order. */
  readonly consumed: number[] = []
  /** What it answered to them. */
  readonly answers = new WeakSet<Answer>()
  readonly now: () => number
  readonly #server: Store
  readonly #timeline: Timeline
  readonly #delay: () => number

  constructor(server: Store, timeline: Timeline, delay: () => number) {
    this.#server = server
    this.#timeline = timeline
    this.#delay = delay
    this.now = timeline.now
  }

  keyspace(name: string, policies: readonly Policy[], report: Report): Keyspace {
    const state = this.#server.keyspace(name, policies, report)
    return new Proxy(state, {
      get: (_, operation: keyof Keyspace) => {
        if (operation === 'policies') return undefined
        const act = (state[operation] as (...args: unknown[]) => unknown).bind(state)
        return (...args: unknown[]) =>
          this.#travel(() => {
            const answer = act(...args) as Answer
            if (operation !== 'consume') return answer
            this.consumed.push(args[2] as number)
            this.answers.add(answer)
            return answer
          })
      },
    })
  }

  close(): void {}

  #travel(act: () => unknown): Promise<unknown> {
    return new Promise((resolve, reject) =>
      this.#timeline.after(this.#delay(), () => {
        try {
          const answer = act()
          this.#timeline.after(this.#delay(), () => resolve(answer))
        } catch (error) {
          reject(error)
        }
      }),
    )
  }
}
