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
   * Lays the calls of each unit of the log's times out in one `way`. `scale` is for 'alternating': the longest time in
   * microseconds in which calls affect each other under a policy. The sorter holds a call back as long as one that began
   * earlier may come: a unit, and the longest duration.
   */
  constructor(
    readonly units: Pick<Reading, 'resolution' | 'hasDurations'>,
    readonly way: Way = 'evenly',
    readonly scale = 0,
  ) {
    this.#sorter = new Sorter(units.resolution + (units.hasDurations ? LONGEST_US : 0))
  }

  /**
   * Takes calls in order of their logged times, and returns those that can be passed on, in order of the instants at which
   * they began. The calls of a unit are collected until one of a later unit comes, and are given instants together.
   */
  add(calls: readonly LoggedCall[]): LoggedCall[] {
    for (const call of calls) {
      const start = call.at - (call.at % this.units.resolution)
      if (start !== this.#start) this.#close(start)
      this.#calls.push(call)
    }
    return this.#sorter.due()
  }

  /** Ends the last unit, when the log has ended, and returns all calls that are left. */
  end(): LoggedCall[] {
    this.#close(Infinity)
    return this.#sorter.end()
  }

  /**
   * Ends a unit of time: its calls get their instants within the unit, less their duration, as a call is logged when it
   * ends. `next` is the start of the unit that begins now, in microseconds.
   */
  #close(next: number): void {
    if (this.units.resolution > 1) this.#place()
    for (const call of this.#calls) {
      call.at -= call.duration
      this.#sorter.add(call)
    }
    this.#calls = []
    this.#start = next
  }

  /** Chooses an instant for each call of the unit. 'evenly' puts each in the middle of its share of the unit. */
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

  /** Whether a caller's calls lie at the end of this unit. It alternates, and after a pause beyond the scale begins with the end. */
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
