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
   * Chooses one `way` to lay out the calls within each unit of the log's times. `scale` is for 'alternating': the longest time in
   * microseconds in which calls affect each other under a policy. The sorter holds a call back as long as a call that began earlier
   * may still come: a unit and the longest duration.
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
      if (start !== this.#start) this.#endUnit(start)
      this.#calls.push(call)
    }
    return this.#sorter.takeDue()
  }

  /** Ends the last unit, when the log has ended, and returns all calls that are left. */
  end(): LoggedCall[] {
    this.#endUnit(Infinity)
    return this.#sorter.take()
  }

  /**
   * Ends a unit of time: its calls get their instants within the unit, less their duration, as a call is logged when it
   * ends. `next` is the start of the unit that begins now, in microseconds.
   */
  #endUnit(next: number): void {
    if (this.units.resolution > 1) this.#layOut()
    for (const call of this.#calls) {
      call.at -= call.duration
      this.#sorter.add(call)
    }
    this.#calls = []
    this.#start = next
  }

  /**
   * Gives each call of the unit an instant in it. 'evenly' divides the unit into as many parts as a caller has calls, and puts each
   * call in the middle of its part; otherwise the call is at the start or the end of the unit.
   */
  #layOut(): void {
    const { resolution } = this.units
    const counts = new Map<string, { all: number; placed: number }>()
    for (const call of this.way === 'evenly' ? this.#calls : []) {
      const count = counts.get(callerOf(call)) ?? { all: 0, placed: 0 }
      counts.set(callerOf(call), count)
      count.all++
    }
    for (const call of this.#calls) {
      const count = counts.get(callerOf(call))
      const isAtEnd = this.way === 'alternating' && this.#decideEdge(callerOf(call))
      const part = count ? (count.placed++ + 0.5) / count.all : 0
      const offset = isAtEnd ? resolution - 1 : Math.floor(part * resolution)
      call.at = this.#start + offset
    }
  }

  /**
   * Decides at which edge of this unit a caller's calls lie, and returns whether it is the end. It is the end in the first unit in
   * which he calls, and again after a pause longer than the scale; otherwise end and start alternate.
   */
  #decideEdge(caller: string): boolean {
    const last = this.#edges.get(caller)
    if (last?.start === this.#start) return last.isEnd
    const longestGap = this.scale + this.units.resolution
    const isEnd = last === undefined || !last.isEnd || this.#start - last.start > longestGap
    this.#edges.set(caller, { start: this.#start, isEnd })
    return isEnd
  }
}

/** The caller whose calls are laid out together: the key of the first selector that counts the call. */
const callerOf = ({ keys }: LoggedCall): string => keys[0] ?? keys.find((key) => key !== undefined)!
