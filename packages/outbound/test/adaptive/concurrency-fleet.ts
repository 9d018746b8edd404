import { Events } from './events.js'
import { type Figures, Tally } from './tally.js'

export interface ConcurrencyScene {
  /** Calls that the provider serves at once. */
  readonly limit: number
  /** The instant from which on it is half of that. */
  readonly halvesAt: number
  /** Calls that may wait at the provider; others are refused. */
  readonly queue: number
  /** The mean of the times of service, and how far they spread: sigma of their logarithms, 0 for equal ones. */
  readonly serviceMs: number
  readonly spread: number
  /** A call and its reply take between these times on their way; 1 and 6 where nothing is said. */
  readonly wayMs?: readonly [least: number, most: number]
  /** Processes start within this time, a second where nothing is said. */
  readonly startMs?: number
  readonly workers: number
  readonly forMs: number
  /** Equal parts of the time, each of which has figures. */
  readonly parts?: number
}

export interface ConcurrencyControl {
  readonly limit: number
  ended(ms: number, refused: boolean, waited: boolean): unknown
}

/** A fleet with more work than it may send. Each process has a control and permits of its own. */
export function runConcurrency(
  scene: ConcurrencyScene,
  seed: number,
  makeControl: (now: () => number) => ConcurrencyControl,
): readonly Figures[] {
  const { limit, halvesAt, queue, serviceMs, spread, wayMs: ways = [1, 6], startMs = 1000 } = scene
  const { workers, forMs, parts = 1 } = scene
  const events = new Events(seed)
  const tally = new Tally()
  const waiting: (() => void)[] = []
  let [busy, busyMs, countedAt] = [0, 0, 0]

  const most = (): number => (events.now < halvesAt ? limit : limit / 2)
  const count = (change: number): void => {
    busyMs += Math.min(busy, most()) * (events.now - countedAt)
    countedAt = events.now
    busy += change
  }
  const serve = (done: () => void): void => {
    count(1)
    events.after(events.around(serviceMs, spread), () => {
      count(-1)
      if (busy < most()) waiting.shift()?.()
      done()
    })
  }

  function work(control: ConcurrencyControl): void {
    let underWay = 0
    const sendAll = (): void => {
      while (underWay < Math.floor(control.limit)) {
        underWay++
        send()
      }
    }
    const send = (): void => {
      const startedAt = events.now
      const wayMs = events.between(...ways)
      const end = (refused: boolean): void => {
        underWay--
        if (refused) tally.refused()
        else tally.served(events.now - startedAt)
        control.ended(events.now - startedAt, refused, true)
        sendAll()
      }
      const done = (): void => events.after(wayMs, () => end(false))
      events.after(wayMs, () => {
        if (busy < most()) serve(done)
        else if (waiting.length < queue) waiting.push(() => serve(done))
        else events.after(wayMs, () => end(true))
      })
    }
    sendAll()
  }

  for (let i = 0; i < workers; i++) {
    const aheadMs = events.between(-MOST_AHEAD_MS, MOST_AHEAD_MS)
    events.after(events.between(0, startMs), () => work(makeControl(() => events.now + aheadMs)))
  }
  return Array.from({ length: parts }, (_, i) => {
    const [from, until] = [(i * forMs) / parts, ((i + 1) * forMs) / parts]
    events.runUntil(until)
    count(0)
    const halvedMs = Math.max(0, until - Math.max(from, halvesAt))
    const figures = tally.take(limit * (until - from - halvedMs / 2), busyMs)
    busyMs = 0
    return figures
  })
}

/** The clocks of processes differ from the provider's by up to so many milliseconds. */
const MOST_AHEAD_MS = 50
