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
   * Gives the calls of a log exact instants: a log with times in whole seconds does not say where in its second a call
   * lay. `units.resolution` is the unit of the log's times in microseconds, such as 1e6 for whole seconds. `way` is where
   * the calls of a unit are put: 'evenly' spreads those of a caller over the unit, 'start' puts all at its start, and
   * 'alternating' puts a caller's calls at the end of one unit and at the start of the next in which it called, as close
   * together as they can have been. Only 'alternating' uses `scale`, the longest time in microseconds in which calls
   * affect each other under a policy: a caller that paused longer is put at the end again. The sorter puts calls in order
   * of the instants at which they began. It holds each back as long as an earlier one may still come, which is a unit
   * and, if the log has durations, the longest duration.
   */
  constructor(
    readonly units: Pick<Reading, 'resolution' | 'hasDurations'>,
    readonly way: Way = 'evenly',
    readonly scale = 0,
  ) {
    this.#sorter = new Sorter(units.resolution + (units.hasDurations ? LONGEST_US : 0))
  }

  /**
   * Takes calls in order of their logged times. Returns the calls that can be passed on, in order of the instants at
   * which they began. A log with times in whole seconds does not say when within its second a call came. So the calls of
   * one such unit of time are collected until a call of a later unit comes, and are then given instants together.
   */
  add(calls: readonly LoggedCall[]): LoggedCall[] {
    for (const call of calls) {
      const start = call.at - (call.at % this.units.resolution)
      if (start !== this.#start) this.#close(start)
      this.#calls.push(call)
    }
    return this.#sorter.due()
  }

  /**
   * Returns all calls that are left, in order of the instants at which they began; to be called when the log has ended.
   * The calls of a unit of time, such as a second, are collected until one of a later unit comes. As none comes after the
   * last unit, it is ended here.
   */
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

  /**
   * Chooses an instant for each call of one unit of time, such as a second, as the log does not say where in the unit the
   * call lay. 'evenly' puts a caller's calls at equal distances, each in the middle of its share. 'start' puts all calls
   * at the start of the unit. 'alternating' puts all calls of a caller at the end of the unit or at its start, by turns,
   * so that those of two units lie close together.
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
   * one unit in which it called to the next, so that two bursts lie as close together as they can have been. After a
   * pause longer than a window it is the end again.
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
