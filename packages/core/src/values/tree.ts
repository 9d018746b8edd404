/** Values by lists of keys, which are looked up one after the other: this is the branch of a list, with those that go on from it. */
export class Tree<Key, Value> {
  value: Value | undefined
  readonly next: Branches<Key, Tree<Key, Value>>

  /** An empty tree, whose levels are Maps, or WeakMaps where the keys are objects that may go with all that is kept behind them. */
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
