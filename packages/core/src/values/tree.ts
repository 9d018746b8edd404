/** Values by lists of keys. The keys of a list lead from branch to branch (`next`), and the last branch has the value. */
export class Tree<Key, Value> {
  value: Value | undefined
  readonly next: Branches<Key, Tree<Key, Value>>

  /** Makes an empty tree of Maps. If it `isWeak`, of WeakMaps: a key, an object, is then kept no longer than it is held elsewhere. */
  constructor(private readonly isWeak: boolean) {
    this.next = isWeak ? (new WeakMap() as unknown as Branches<Key, Tree<Key, Value>>) : new Map()
  }

  /** Keeps a value for these keys. */
  keep([key, ...keys]: readonly Key[], value: Value): void {
    const next = this.next.get(key!) ?? new Tree<Key, Value>(this.isWeak)
    this.next.set(key!, next)
    if (keys.length > 0) next.keep(keys, value)
    else next.value = value
  }
}

type Branches<Key, Branch> = Pick<Map<Key, Branch>, 'get' | 'set'>
