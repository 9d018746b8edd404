import { createHash, type Hash } from 'node:crypto'

/** One that events belong to: a process, or the server. Its events wait while it stands still, and are dropped once it is dead. */
export interface Owner {
  /** The instant until which it does nothing. */
  stillUntil: number
  isDead: boolean
}

/** The order of events of one instant, as in a turn of Node's event loop. */
export const TURN = { timer: 0, io: 1, immediate: 2 } as const

interface Event {
  at: number
  readonly turn: number
  /** When it was due at first, and its number: what was due earlier comes first where both have waited. */
  readonly due: number
  readonly number: number
  readonly owner: Owner | undefined
  readonly act: () => void
  isCancelled: boolean
}

/**
 * Virtual time in whole microseconds, and what happens in it, one event after the other. After each event everything that promises
 * have made ready is run, by a real `setImmediate`. Each line of the trace goes into a digest; the latest ones are kept.
 */
export class World {
  now = 0
  steps = 0
  readonly #events: Event[] = []
  readonly #digest: Hash = createHash('sha256')
  readonly #lines: string[] = []
  #scheduled = 0
  /** Called before each event, and after what it has caused. */
  readonly beforeStep: (() => void)[] = []

  /** Schedules `act` in `delay` microseconds, as an event of `owner`. Returns what cancels it. */
  after(delay: number, owner: Owner | undefined, act: () => void, turn: number = TURN.io): () => void {
    const due = this.now + Math.max(0, Math.round(delay))
    const event = { at: due, turn, due, number: this.#scheduled++, owner, act, isCancelled: false }
    this.#push(event)
    return () => (event.isCancelled = true)
  }

  /** Lets everything happen until an instant. */
  async runUntil(end: number): Promise<void> {
    for (let next = this.#events[0]; next && next.at <= end; next = this.#events[0]) {
      this.#pop()
      if (next.isCancelled || next.owner?.isDead) continue
      const still = next.owner?.stillUntil ?? 0
      if (still > next.at) {
        next.at = still
        this.#push(next)
        continue
      }
      this.now = next.at
      this.steps++
      for (const each of this.beforeStep) each()
      next.act()
      await new Promise<void>((resolve) => void setImmediate(resolve))
    }
    this.now = Math.max(this.now, end)
  }

  trace(line: string): void {
    const whole = `${this.now} ${line}\n`
    this.#digest.update(whole)
    if (this.#lines.push(whole) > 4000) this.#lines.splice(0, 2000)
  }

  /** The latest lines of the trace that hold one of the words. */
  lines(most: number, words: readonly string[] = []): string {
    const chosen = this.#lines.filter(
      (line) => words.length === 0 || words.some((word) => line.includes(word)),
    )
    return chosen.slice(-most).join('')
  }

  digest(): string {
    return this.#digest.copy().digest('hex')
  }

  #push(event: Event): void {
    const events = this.#events
    let i = events.push(event) - 1
    for (let up = (i - 1) >> 1; i > 0 && comesBefore(event, events[up]!); up = (i - 1) >> 1) {
      events[i] = events[up]!
      i = up
    }
    events[i] = event
  }

  #pop(): void {
    const events = this.#events
    const last = events.pop()!
    if (events.length === 0) return
    let i = 0
    for (let down = 1; down < events.length; down = 2 * i + 1) {
      if (down + 1 < events.length && comesBefore(events[down + 1]!, events[down]!)) down++
      if (comesBefore(last, events[down]!)) break
      events[i] = events[down]!
      i = down
    }
    events[i] = last
  }
}

function comesBefore(a: Event, b: Event): boolean {
  return (a.at - b.at || a.turn - b.turn || a.due - b.due || a.number - b.number) < 0
}
