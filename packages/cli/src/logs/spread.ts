import { type LoggedCall, LONGEST_US } from './calls.js'
import { Sorter } from './order.js'
import type { Reading } from './read-logs.js'

/*
 * Where calls lay within the unit of the log's times. A log whose times are whole seconds says of ten calls that they came in
 * one second, and not whether they came together.
 */

/**
 * evenly: the calls of one caller lie at equal distances in their unit. start: all lie at its start. alternating: a caller's
 * calls lie at the end of one unit and at the start of the next, as close across the edge as they can have been.
 */
export type Way = 'evenly' | 'start' | 'alternating'

/** Gives calls, which come in order of their logged times, the instants at which they began, and puts them in that order. */
export class Spread {
  readonly #sorter: Sorter
  /** Calls of the unit that goes on. */
  #calls: LoggedCall[] = []
  #start = -Infinity
  /** For `alternating`, by caller: the last unit in which it called, and whether it was put at the end. */
  readonly #edges = new Map<string, { start: number; isEnd: boolean }>()

  /**
   * Spreads the calls of one unit of time. `units` says how coarse the log's times are; `way` is how the calls of one unit of time are laid out in it. `scale`
   * is the window in which calls count together, in microseconds: after a longer pause an alternation begins anew.
   */
  constructor(
    readonly units: Pick<Reading, 'resolution' | 'hasDurations'>,
    readonly way: Way = 'evenly',
    readonly scale = 0,
  ) {
    this.#sorter = new Sorter(units.resolution + (units.hasDurations ? LONGEST_US : 0))
  }

  /**
   * Takes calls in order of their logged times. Returns those that can be passed on, with the instants at which they
   * began.
   */
  add(calls: readonly LoggedCall[]): LoggedCall[] {
    for (const call of calls) {
      const start = call.at - (call.at % this.units.resolution)
      if (start !== this.#start) this.#close(start)
      this.#calls.push(call)
    }
    return this.#sorter.due()
  }

  /** Returns all calls that are left, when the log has ended. */
  end(): LoggedCall[] {
    this.#close(Infinity)
    return this.#sorter.end()
  }

  /** Gives the calls of the unit of time that has ended their instants, and begins the unit that starts at `next`. */
  #close(next: number): void {
    if (this.units.resolution > 1) this.#place()
    for (const call of this.#calls) {
      call.at -= call.duration
      this.#sorter.add(call)
    }
    this.#calls = []
    this.#start = next
  }

  /**
   * Gives the calls that were logged with one time, as a whole second, instants within that unit: each caller's at equal
   * distances, or all at its start or its end, by the way that was asked for.
   */
  #place(): void {
    const { resolution } = this.units
    const counts = new Map<string, { all: number; placed: number }>()
    for (const call of this.way === 'evenly' ? this.#calls : []) {
      const count = counts.get(nameOf(call)) ?? { all: 0, placed: 0 }
      counts.set(nameOf(call), count)
      count.all++
    }
    for (const call of this.#calls) {
      const count = counts.get(nameOf(call))
      const isAtEnd = this.way === 'alternating' && this.#alternate(nameOf(call))
      const part = count ? (count.placed++ + 0.5) / count.all : 0
      const offset = isAtEnd ? resolution - 1 : Math.floor(part * resolution)
      call.at = this.#start + offset
    }
  }

  /**
   * Whether a caller's calls are laid at the end of this unit of time, and not at its start. End and start alternate from
   * one unit in which it called to the next, so that two bursts meet at the edge; after a pause of a window it is the
   * end again.
   */
  #alternate(name: string): boolean {
    const edge = this.#edges.get(name)
    if (edge?.start === this.#start) return edge.isEnd
    const rest = this.scale + this.units.resolution
    const isEnd = edge === undefined || !edge.isEnd || this.#start - edge.start > rest
    this.#edges.set(name, { start: this.#start, isEnd })
    return isEnd
  }
}

/** The name under which a caller's calls are spread together: his key for the first selector that counts the call. */
const nameOf = ({ keys }: LoggedCall): string => keys[0] ?? keys.find((key) => key !== undefined)!
