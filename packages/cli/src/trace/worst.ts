/** The callers with the most denials. */
export function worst<T extends { readonly denied: number }>(callers: readonly T[]): readonly T[] {
  return [...callers].sort((one, other) => other.denied - one.denied).slice(0, MOST)
}

/** Adds a caller to a list of the worst. */
export function addWorst<T extends { readonly denied: number }>(list: readonly T[], caller: T): readonly T[] {
  return list.length === MOST && caller.denied <= list.at(-1)!.denied ? list : worst([...list, caller])
}

const MOST = 5
