/**
 * Key to slot number, over many small Maps. One big Map would stop the process: growing it to a million keys takes
 * 40 ms and more, and shrinking it while a million keys end 20 ms. A shard is chosen by the last six characters,
 * which is where keys differ; a bad spread costs only those pauses.
 */
export class KeyIndex {
  readonly #shards: (Map<string, number> | undefined)[] = Array<undefined>(SHARDS).fill(undefined)

  /** The slot of `key`, 0 where there is none. */
  get(key: string): number {
    return this.#shards[shardOf(key)]?.get(key) ?? 0
  }

  set(key: string, slot: number): void {
    const shard = shardOf(key)
    const map = (this.#shards[shard] ??= new Map())
    map.set(key, slot)
  }

  delete(key: string): void {
    this.#shards[shardOf(key)]?.delete(key)
  }
}

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
