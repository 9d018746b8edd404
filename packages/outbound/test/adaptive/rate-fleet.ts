import { Events } from './events.js'
import { type Figures, Tally } from './tally.js'

export interface RateScene {
  /** Calls in any second, strictly. */
  readonly limit: number
  /** The instant from which on it is half of that. */
  readonly halvesAt: number
  /** Whether refusals say how long to wait: whole seconds, rounded up. */
  readonly states: boolean
  readonly workers: number
  readonly forMs: number
  /** Equal parts of the time, each of which has figures. */
  readonly parts?: number
}

export interface RateControl {
  readonly limit: number
  ended(ms: number, refused: boolean, units: number): unknown
}

/** A fleet with more work than it may send. Each process sends evenly by a control of its own, and obeys what refusals state. */
export function runRate(
  scene: RateScene,
  seed: number,
  makeControl: (now: () => number) => RateControl,
): readonly Figures[] {
  const { limit, halvesAt, states, workers, forMs, parts = 1 } = scene
  const events = new Events(seed)
  const tally = new Tally()
  const log: number[] = []

  /** Undefined if the call is served, else for how many milliseconds it is refused. */
  function arrive(): number | undefined {
    const { now } = events
    while (log.length > 0 && log[0]! <= now - WINDOW_MS) log.shift()
    if (log.length >= (now < halvesAt ? limit : limit / 2)) {
      return Math.ceil((log[0]! + WINDOW_MS - now) / 1000) * 1000
    }
    log.push(now)
    return undefined
  }

  function work(control: RateControl): void {
    let next = events.now
    let heldUntil = 0
    const send = (): void => {
      // A turn that was booked before a pause comes after it.
      if (events.now < heldUntil) return events.after(heldUntil - events.now, send)
      const startedAt = events.now
      const lateMs = events.between(0, 1) < LATE_SHARE ? events.between(0, 20) : events.between(0, 1)
      const wayMs = events.between(1, 6)
      events.after(lateMs + wayMs, () => {
        const refusedMs = arrive()
        events.after(wayMs, () => {
          if (refusedMs === undefined) tally.served(events.now - startedAt)
          else tally.refused()
          if (states && refusedMs !== undefined) heldUntil = Math.max(heldUntil, events.now + refusedMs)
          control.ended(events.now - startedAt, refusedMs !== undefined, 1)
        })
      })
      next = Math.max(events.now, next) + WINDOW_MS / control.limit
      events.after(next - events.now, send)
    }
    send()
  }

  for (let i = 0; i < workers; i++) {
    events.after(events.between(0, START_MS), () => work(makeControl(() => events.now)))
  }
  return Array.from({ length: parts }, (_, i) => {
    const [from, until] = [(i * forMs) / parts, ((i + 1) * forMs) / parts]
    events.runUntil(until)
    const halvedMs = Math.max(0, until - Math.max(from, halvesAt))
    return tally.take((limit * (until - from - halvedMs / 2)) / WINDOW_MS)
  })
}

const WINDOW_MS = 1000
/** Processes start within so many milliseconds. */
const START_MS = 1000
/** Of the calls, because their process is busy. */
const LATE_SHARE = 0.01
