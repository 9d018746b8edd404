/**
 * Maps keys to row numbers. Few keys lie in one Map, many in 256 small ones, because one large Map would stall the process:
 * growing to a million keys takes 40 ms and more, shrinking while a million keys expire 20 ms. The last six characters choose
 * the shard, because keys differ there; an uneven spread costs no more than those stalls.
 */
export class KeyIndex {
  /** Undefined once the keys are in shards. */
  #few: Map<string, number> | undefined = new Map()
  #shards: (Map<string, number> | undefined)[] = []

  /** The row of `key`, 0 if it has none. */
  get(key: string): number {
    return (this.#few ?? this.#shards[shardOf(key)])?.get(key) ?? 0
  }

  set(key: string, row: number): void {
    if (this.#few && this.#few.size >= FEW) this.#split(this.#few)
    const map = this.#few ?? (this.#shards[shardOf(key)] ??= new Map<string, number>())
    map.set(key, row)
  }

  delete(key: string): void {
    const map = this.#few ?? this.#shards[shardOf(key)]
    map?.delete(key)
  }

  /** To be called once all keys are deleted. */
  clear(): void {
    this.#few = new Map()
    this.#shards = []
  }

  #split(few: Map<string, number>): void {
    this.#few = undefined
    this.#shards = Array<undefined>(SHARDS).fill(undefined)
    for (const [key, row] of few) this.set(key, row)
  }
}

const FEW = 2048
const SHARDS = 256

/** FNV-1a of the last characters, folded: shards of even size fill their Maps, which grow by doubling, alike. */
function shardOf(key: string): number {
  let hash = 0x811c9dc5
  for (let i = Math.max(0, key.length - MIXED); i < key.length; i++) {
    hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  }
  return (hash ^ (hash >>> 15)) & (SHARDS - 1)
}

/** Characters at the end of a key that choose its shard. */
const MIXED = 6
