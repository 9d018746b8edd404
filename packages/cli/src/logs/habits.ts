import { copiedText } from '@sluice/core/internal'

/** The habits of one caller, by a part of his calls: what tells an office from a scraper. */
export interface Habits {
  /** The path that he asked for most, and the share of his calls that it had, from 0 to 1. */
  readonly path: string
  readonly share: number
  /** Different paths and user agents, up to 32. */
  readonly paths: number
  readonly agents: number
}

/** The calls of one caller, without his first: how many, and how often to which path and by which user agents. */
class SampledCaller {
  calls = 0
  readonly paths = new Map<string, number>()
  readonly agents = new Set<string>()
}

/** The habits of callers with many calls: of 1,024 callers at most, of whom those with fewest make room for others. */
export class HabitsByCaller {
  /** A caller of one call is undefined: where most call once, an object for each would fill the memory until it is collected. */
  readonly #callers = new Map<string, SampledCaller | undefined>()
  /** The fewest calls that a caller may have: those with fewer have made room. */
  #fewestKept = 0

  /** Adds a call of a caller. His first call only makes him known. Of his paths and agents the first 32 are kept. */
  add(key: string, path: string, agent: string): void {
    const caller = this.#callers.get(key) ?? this.#meet(key)
    if (!caller) return
    caller.calls++
    if (caller.paths.has(path) || caller.paths.size < MOST_VALUES)
      caller.paths.set(copiedText(path), (caller.paths.get(path) ?? 0) + 1)
    if (caller.agents.size < MOST_VALUES) caller.agents.add(copiedText(agent))
  }

  /**
   * Makes a caller known at his first call, and returns undefined; at his second, returns the object for that and all further
   * calls. Beyond 1,024 callers those with fewest calls are forgotten.
   */
  #meet(key: string): SampledCaller | undefined {
    const caller = this.#callers.has(key) ? new SampledCaller() : undefined
    this.#callers.set(copiedText(key), caller)
    if (this.#callers.size > MOST_CALLERS) {
      this.#fewestKept++
      for (const [otherKey, other] of this.#callers)
        if ((other?.calls ?? 0) < this.#fewestKept) this.#callers.delete(otherKey)
    }
    return caller
  }

  /** The habits of a caller; undefined where too few of his calls are known. */
  of(key: string): Habits | undefined {
    const { calls = 0, paths, agents } = this.#callers.get(key) ?? {}
    if (!paths || !agents || calls < LEAST_CALLS) return undefined
    const [path, count] = [...paths].reduce((one, other) => (other[1] > one[1] ? other : one))
    return { path, share: count / calls, paths: paths.size, agents: agents.size }
  }
}

const MOST_CALLERS = 1024
const MOST_VALUES = 32
const LEAST_CALLS = 8
