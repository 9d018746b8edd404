import { type Execution, partsOfKey } from './server.js'
import type { History, Record } from './simulation.js'

/** A law, and whether a history keeps it. */
export interface Law {
  readonly name: string
  /** Where it is promised: a section of the design, or of docs/outages.md. */
  readonly source: string
  /** Each breach in words, and in `checked` how often the law was applied. */
  breaches(history: History, count: (checked: number) => void): Iterable<string>
}

/** The records of calls on a key, in their order. */
export function recordsOn(key: string, { records }: History): readonly Record[] {
  return recordsByKey(records).get(key) ?? []
}

/** The runs of scripts on a caller's key, in their order. */
export function runsOn(key: string, { server }: Pick<History, 'server'>): readonly Execution[] {
  return runsByKey(server.executions).get(key) ?? []
}

const recordsByKey = once((records: readonly Record[]) => grouped(records, ({ call }) => call.key))
const runsByKey = once((executions: readonly Execution[]) => {
  const runs = new Map<string, Execution[]>()
  for (const execution of executions) {
    for (const key of new Set(execution.keys.map((name) => partsOfKey(name).key ?? ''))) {
      const own = runs.get(key)
      if (own) own.push(execution)
      else runs.set(key, [execution])
    }
  }
  return runs
})

/** Makes a function that keeps what `make` returns for an object. */
function once<K extends object, V>(make: (from: K) => V): (from: K) => V {
  const made = new WeakMap<K, V>()
  return (from) => {
    if (!made.has(from)) made.set(from, make(from))
    return made.get(from)!
  }
}

/** Lists by what `by` says of each. */
export function grouped<T>(list: readonly T[], by: (each: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const each of list) {
    const group = groups.get(by(each))
    if (group) group.push(each)
    else groups.set(by(each), [each])
  }
  return groups
}
