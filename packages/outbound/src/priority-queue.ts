/** What waits: a turn. */
export interface Queued<T extends Queued<T>> {
  readonly terms: {
    readonly priority: number
    readonly tenant: string | undefined
    readonly weight: number
    readonly cost: number
  }
  /** Where it waits; undefined outside of a queue. */
  readonly line: TenantQueue<T> | undefined
  standIn(line: TenantQueue<T> | undefined): void
}

/**
 * Turns that wait: the highest priority first. Among the turns of one priority the tenants alternate, by deficit round robin
 * (Shreedhar and Varghese, 1995): in each round every tenant that waits may take its weight times the highest cost, its oldest
 * turn first. All calls without a tenant are one tenant. A turn takes no longer with more tenants, and with more priorities by
 * the logarithm of their number: the levels, each with the turns of one priority, are a binary heap.
 */
export class PriorityQueue<T extends Queued<T>> {
  readonly #heap: Level<T>[] = []
  /** By priority, while there are several. */
  #levels: Map<number, Level<T>> | undefined
  /** Turns that wait. */
  size = 0

  /**
   * Adds a turn behind those of its tenant and priority. The turns of one priority are a level, which the first of them begins. Levels
   * are in a heap, with the next one at its top, and from two on also in a Map by priority. `spareLevel` is an empty one that an earlier
   * queue has left.
   */
  add(turn: T): void {
    const { priority } = turn.terms
    const [top] = this.#heap
    let level = top?.priority === priority ? top : this.#levels?.get(priority)
    const isFirstOfPriority = level === undefined
    level ??= spareLevel ?? new Level<T>()
    if (isFirstOfPriority) {
      spareLevel = undefined
      level.begin(priority, this.#heap.length)
      this.#heap.push(level)
    }
    if (isFirstOfPriority && top) {
      this.#levels ??= new Map([[top.priority, top]])
      this.#levels.set(priority, level)
      this.#rise(level)
    }
    level.add(turn)
    this.size++
  }

  /**
   * Removes a turn from its line (the turns of one tenant at one level of priority), if it is in one. A level without turns leaves
   * the heap: the heap's last level takes its place. If it was the last itself, the next queue gets the empty one (`spareLevel`).
   */
  delete(turn: T): void {
    const { line } = turn
    if (!line) return
    const { level } = line
    level.delete(turn, line)
    this.size--
    if (level.size > 0) return
    if (this.size === 0) this.#levels = undefined
    this.#levels?.delete(level.priority)
    const last = this.#heap.pop()!
    if (last === level) {
      spareLevel = level as Level<never>
      return
    }
    this.#put(last, level.place)
    this.#rise(last)
    this.#sink(last)
  }

  /** Removes a turn that is granted, and charges its cost to its tenant, unless no other tenant waits. */
  take(turn: T): void {
    const { level } = turn.line!
    if (level.lines.size > 1) level.charge(turn, turn.line!)
    this.delete(turn)
  }

  /**
   * Returns the first turn that is suitable, by default the first of all; undefined if none is. Callers give no `place` and no
   * `best`: the search calls itself with both, for the part of the heap from `place` down, where `best` is the first suitable turn
   * found elsewhere. No level comes before the level above it in the heap. So the search ends at a suitable turn, and at a level
   * that comes after that of `best`.
   */
  first(isSuitable?: (turn: T) => boolean, place = 0, best?: T): T | undefined {
    const level = this.#heap[place]
    if (!level || (best && isBefore(best.line!.level, level))) return best
    for (const { turns } of level.lines.values())
      for (const turn of turns) if (!isSuitable || isSuitable(turn)) return turn
    const left = this.first(isSuitable, 2 * place + 1, best)
    return this.first(isSuitable, 2 * place + 2, left)
  }

  /** Moves a level up the heap, past each level above that comes after it. */
  #rise(level: Level<T>): void {
    while (level.place > 0) {
      const above = this.#heap[(level.place - 1) >> 1]!
      if (!isBefore(level, above)) return
      this.#swap(level, above)
    }
  }

  /** Moves a level down the heap as long as a level below comes before it. Of the two below, the first one takes its place. */
  #sink(level: Level<T>): void {
    for (;;) {
      const left = 2 * level.place + 1
      const [first, second] = [this.#heap[left], this.#heap[left + 1]]
      const next = first && second && isBefore(second, first) ? second : first
      if (!next || !isBefore(next, level)) return
      this.#swap(next, level)
    }
  }

  /** Has two levels of the heap change places. */
  #swap(one: Level<T>, other: Level<T>): void {
    const { place } = one
    this.#put(one, other.place)
    this.#put(other, place)
  }

  #put(level: Level<T>, place: number): void {
    this.#heap[place] = level
    level.standAt(place)
  }
}

/** The turns of one priority. */
class Level<T extends Queued<T>> {
  /** By tenant, in the order of the round: the first is served. */
  readonly lines = new Map<string | undefined, TenantQueue<T>>()
  size = 0
  priority = 0
  place = 0
  /** The highest cost since turns wait here: in a round each tenant can then take one at least. */
  #quantum = 1

  /** Holds turns of `priority` from now on, at a place in the heap of a queue. */
  begin(priority: number, place: number): void {
    this.priority = priority
    this.place = place
  }

  standAt(place: number): void {
    this.place = place
  }

  /**
   * Adds a turn of this priority at the end of its tenant's line, which is made if there is none. A turn knows its line (`standIn`).
   * `#quantum`, the largest cost so far, is what each tenant may take in one round, so that any turn fits. A line of the last tenant
   * that was kept without turns goes if another tenant comes.
   */
  add(turn: T): void {
    const { tenant, cost } = turn.terms
    let line = this.lines.get(tenant)
    if (!line) {
      if (this.size === 0) this.lines.clear()
      this.lines.set(tenant, (line = new TenantQueue<T>(this)))
    }
    line.turns.add(turn)
    turn.standIn(line)
    this.size++
    if (cost > this.#quantum) this.#quantum = cost
  }

  /**
   * Removes a turn from the line of its tenant. A tenant without turns is forgotten. If no tenant is left, the line of the last is
   * kept for the next turn, as if the tenant were new: its balance, the units that it may still take, begins anew (`forget`).
   */
  delete(turn: T, line: TenantQueue<T>): void {
    line.turns.delete(turn)
    turn.standIn(undefined)
    this.size--
    if (line.turns.size > 0) return
    if (this.size > 0) this.lines.delete(turn.terms.tenant)
    else {
      if (line.balance !== 0) line.forget()
      this.#quantum = 1
    }
  }

  /** Charges a turn to its tenant. A tenant that has had its share of the round goes behind the others. */
  charge({ terms }: T, line: TenantQueue<T>): void {
    const isRoundOver = line.pay(Math.max(1, terms.cost), this.#quantum * terms.weight)
    if (!isRoundOver) return
    this.lines.delete(terms.tenant)
    this.lines.set(terms.tenant, line)
  }
}

/** The turns of one tenant and priority. */
export class TenantQueue<T extends Queued<T>> {
  /** The oldest first. */
  readonly turns = new Set<T>()
  /** Units that the tenant may still take in this round; below 0 if its last call took more. */
  balance = 0
  /** Whether it has been served in this round, and may be again. */
  #isServed = false

  constructor(readonly level: Level<T>) {}

  /**
   * Takes `cost` from the tenant's balance. If this is its first turn in the round, its `share` of the round is added before.
   * Returns whether the balance is used up, which ends its round.
   */
  pay(cost: number, share: number): boolean {
    if (!this.#isServed) this.balance += share
    this.balance -= cost
    this.#isServed = this.balance > 0
    return !this.#isServed
  }

  forget(): void {
    this.balance = 0
    this.#isServed = false
  }
}

function isBefore(one: { readonly priority: number }, other: { readonly priority: number }): boolean {
  return one.priority > other.priority
}

/** The level that was emptied last, for the next queue that needs one: a call that waits alone makes none. */
let spareLevel: Level<never> | undefined
