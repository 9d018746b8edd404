import type { Limiter } from '@sluice/core'
import type { InstrumentId } from '../instruments.js'
import type { Observe } from '../sinks/sink.js'
import { BoundedLabels } from './bounded-labels.js'

/** How the limiters of one name stand, and what their stores reported. */
export class LimiterState {
  readonly #open = new Set<Limiter>()
  /** The limiters with a store elsewhere; false while it does not decide. */
  readonly #available = new Map<Limiter, boolean>()
  readonly #codes = new BoundedLabels(MOST_CODES)
  readonly #warnings: number[] = []
  readonly #nearing = new Map<number, number>()
  #evicted = 0
  #healed = 0

  constructor(private readonly name: string) {}

  /**
   * Follows a limiter's events. 'degraded' and 'recovered' say whether its store decides. The others are counted: keys that a full
   * memory store removed ('evicted'), keys whose unreadable state was discarded ('healed'), shares of limits that calls crossed
   * ('nearing'), and warnings. The listener of warnings is passive, so that they are still written as process warnings. Returns a
   * function that ends all this and forgets the limiter, but not its counts.
   */
  follow(limiter: Limiter): () => void {
    this.#open.add(limiter)
    const ends = [
      limiter.on('degraded', () => void this.#available.set(limiter, false)),
      limiter.on('recovered', () => void this.#available.set(limiter, true)),
      limiter.on('evicted', () => void this.#evicted++),
      limiter.on('healed', () => void this.#healed++),
      limiter.on(
        'nearing',
        ({ share }) => void this.#nearing.set(share, 1 + (this.#nearing.get(share) ?? 0)),
      ),
      limiter.on('warning', ({ code }) => this.#warned(code), { passive: true }),
    ]
    return () => {
      for (const end of ends) end()
      this.#forget(limiter)
    }
  }

  /**
   * Notes that a limiter's store is outside this process, as a decision has just waited for it. From then on it is reported whether
   * the store is available: it is, until the limiter's event 'degraded'.
   */
  usesStore(limiter: Limiter): void {
    if (!this.#available.has(limiter)) this.#available.set(limiter, true)
  }

  /**
   * Reports the value of an instrument for all open limiters of this name together, and forgets limiters that are closed.
   * `storeAvailable` is 1 only if the store is available to each of the limiters, and is left out while none has a store elsewhere.
   */
  report(instrument: InstrumentId, observe: Observe): void {
    const limiters = { limiter: this.name }
    for (const limiter of this.#open) if (limiter.isClosed) this.#forget(limiter)
    if (instrument === 'evicted') observe(this.#evicted, limiters)
    else if (instrument === 'healed') observe(this.#healed, limiters)
    else if (instrument === 'nearing')
      this.#nearing.forEach((count, share) => observe(count, { ...limiters, share: String(share) }))
    else if (instrument === 'warnings') {
      observe(0, { ...limiters, code: 'none' }) // so that the series is there before the first warning
      this.#warnings.forEach((count, i) => observe(count, { ...limiters, code: this.#codes.labels[i]! }))
    } else if (instrument === 'storeAvailable' && this.#available.size > 0) {
      observe([...this.#available.values()].every(Boolean) ? 1 : 0, limiters)
    } else if (instrument === 'waiting' && this.#open.size > 0) {
      let waiting = 0
      for (const limiter of this.#open) waiting += limiter.waiting
      observe(waiting, { kind: 'limiter', name: this.name })
    } else if (instrument === 'held') {
      const reserving = [...this.#open].filter(({ reserves }) => reserves)
      let held = 0
      for (const limiter of reserving) held += limiter.held
      if (reserving.length > 0) observe(held, limiters)
    }
  }

  /**
   * Leaves a limiter, which is closed or no longer observed, out of what is reported from now on. Its events that were
   * counted stay, because counters must never fall.
   */
  #forget(limiter: Limiter): void {
    this.#open.delete(limiter)
    this.#available.delete(limiter)
  }

  /** Counts a warning under its code. Beyond 50 codes all further ones share the count of 'other'. */
  #warned(code: string): void {
    const number = this.#codes.numberFor(code)
    this.#warnings[number] = (this.#warnings[number] ?? 0) + 1
  }
}

const MOST_CODES = 50
