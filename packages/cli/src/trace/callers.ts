import { ownText } from '@sluice/core/internal'

/** Callers by number, in the order in which they first called. */
export class Callers {
  readonly #maps: Map<string, number>[] = [new Map()]
  size = 0

  /**
   * The number of a key, which a new key is given here: 0, 1, 2 and so on. There are several maps, as one has a largest
   * size.
   */
  numberFor(key: string): number {
    for (const map of this.#maps) {
      const known = map.get(key)
      if (known !== undefined) return known
    }
    if (this.#maps.at(-1)!.size === MOST_OF_A_MAP) this.#maps.push(new Map())
    this.#maps.at(-1)!.set(ownText(key), this.size) // a key that was cut out of a line would hold the whole line
    return this.size++
  }

  /** The items with their callers' keys in place of numbers. One pass over all callers, as no list by number is kept. */
  named<T extends { readonly caller: number }>(
    items: readonly T[],
  ): (Omit<T, 'caller'> & { readonly key: string })[] {
    const keys = new Map<number, string>()
    const wanted = new Set(items.map(({ caller }) => caller))
    for (const map of wanted.size > 0 ? this.#maps : []) {
      for (const [key, number] of map) if (wanted.has(number)) keys.set(number, key)
    }
    return items.map(({ caller, ...item }) => ({ key: keys.get(caller)!, ...item }))
  }
}

/** Half of what a Map of V8 holds. */
const MOST_OF_A_MAP = 2 ** 23
