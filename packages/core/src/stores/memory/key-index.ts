/**
 * Key to slot number, over many small Maps. One big Map would stop the process: growing it to a million keys takes
 * 40 ms and more, and shrinking it while a million keys end 20 ms. A shard is chosen by the last three characters,
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

function shardOf(key: string): number {
  const n = key.length
  const mixed = key.charCodeAt(n - 1) * 7 + key.charCodeAt(n - 2) * 31 + key.charCodeAt(n - 3) * 131
  return mixed & (SHARDS - 1) // NaN, for keys of less than three characters, counts as 0
}
