import type { Answer, Ask, Booking, Charge, Clock } from '@sluice/core/store'
import {
  type Correction,
  type Keyspace,
  type Policy,
  State,
  type Store,
  StoreError,
} from '@sluice/core/store'

/** The state of one key: one `State` for each policy, and what they have in common. `version` changes with every write. */
interface Entry {
  readonly states: readonly State[]
  readonly born: number
  last: number
  blockedUntil: number
  heldUntil: number
  version: object
}

/** A booking that knows its entry, the version that it left there, and how to undo it. */
interface MapBooking extends Booking {
  readonly entry: Entry
  readonly version: object
  undo: (() => void) | undefined
}

type On = [algorithm: Policy['algorithm'], state: State, policy: Policy]

class MapKeyspace implements Keyspace {
  constructor(
    readonly policies: readonly Policy[],
    readonly entries: Map<string, Entry>,
    readonly now: Clock,
  ) {}

  decide(ask: Ask, key: string, cost: number, maxWait: number): Answer {
    const now = this.now()
    const entry = this.entries.get(key) ?? this.newEntry(now)
    const barred = Math.max(now, entry.blockedUntil, entry.heldUntil)
    const from = cost > 0 ? Math.max(barred, entry.last) : barred
    const earliest = this.each(entry, (algorithm, state, policy) =>
      cost > 0 ? algorithm.earliest(state, policy, from, cost) : from,
    )
    const at = Math.max(...earliest)
    const isInTime = at <= now + (ask === 'book' ? maxWait : 0)
    const full = isInTime ? undefined : entry.heldUntil > now ? 'held' : 'limit'
    const reason = at === Infinity ? 'cost' : entry.blockedUntil > now ? 'blocked' : full
    const isCharged = reason === undefined && ask !== 'peek' && cost > 0
    const booking = isCharged ? this.book(key, entry, { at, cost }, now) : undefined
    const open = Math.max(barred, entry.last)
    const views = this.each(entry, (algorithm, state, policy) => {
      const view = { remaining: 0, resetAt: 0 }
      algorithm.view(state, policy, open, view)
      return open > now ? { ...view, remaining: 0 } : view
    })
    const remaining = Math.min(...views.map((view) => view.remaining))
    return {
      now,
      at,
      reason,
      binding: reason ? earliest.indexOf(at) : views.findIndex((view) => view.remaining === remaining),
      remaining,
      resetAt: Math.max(barred, ...views.map((view) => view.resetAt)),
      parts: views[1] && views.flatMap((view, i) => [earliest[i]!, view.remaining, view.resetAt]),
      booking: at > now ? booking : undefined,
    }
  }

  confirm({ key, entry }: MapBooking): 'stands' | 'lost' | 'held' {
    if (this.entries.get(key) !== entry) return 'lost'
    return Math.max(entry.blockedUntil, entry.heldUntil) > this.now() ? 'held' : 'stands'
  }

  cancel(booking: MapBooking): boolean {
    const { key, entry, version, undo, cost } = booking
    booking.undo = undefined
    if (!undo || this.entries.get(key) !== entry) return false
    const isNewest = entry.version === version
    if (isNewest) undo()
    else this.correct({ kind: 'release', key, charge: booking, units: cost })
    return isNewest
  }

  correct(change: Correction): number {
    const now = this.now()
    const entry = this.entries.get(change.key) ?? this.newEntry(now)
    const open = Math.max(now, entry.last)
    if (change.kind !== 'refund' && change.kind !== 'release') this.entries.set(change.key, entry)
    switch (change.kind) {
      case 'reset':
        this.entries.delete(change.key)
        return 0
      case 'block':
        entry.blockedUntil = now + change.duration
        return 0
      case 'hold':
        entry.heldUntil = Math.max(entry.heldUntil, now + change.duration)
        return 0
      case 'charge':
        entry.last = open
        return this.write(entry, (algorithm, ...on) => algorithm.admit(...on, open, change.cost))
      case 'refund':
        return this.write(entry, (algorithm, ...on) => algorithm.admit(...on, now, -change.cost))
      case 'release':
        if (change.charge.decidedAt < entry.born) return 0
        return this.write(entry, (algorithm, ...on) =>
          algorithm.release(...on, open, change.charge, change.units),
        )
    }
  }

  /** Changes the state under all policies. Returns the units that took effect under every one. */
  write(entry: Entry, change: (...on: On) => number): number {
    entry.version = {}
    return Math.min(...this.each(entry, change))
  }

  /** Charges all policies and keeps what was there before. */
  book(key: string, entry: Entry, charge: Charge, decidedAt: number): MapBooking {
    const { last, version: before } = entry
    const saved = entry.states.map(({ cells, ring }) => ({ cells: cells.slice(), mark: ring.mark() }))
    this.each(entry, (algorithm, ...on) => algorithm.admit(...on, charge.at, charge.cost))
    for (const { ring } of entry.states) ring.seal()
    const version = {}
    this.entries.set(key, Object.assign(entry, { last: charge.at, version }))
    const undo = () => {
      Object.assign(entry, { last, version: before })
      for (const [i, { cells, ring }] of entry.states.entries()) {
        cells.set(saved[i]!.cells)
        ring.restore(saved[i]!.mark)
      }
    }
    return { key, ...charge, decidedAt, entry, version, undo }
  }

  each<T>(entry: Entry, visit: (...on: On) => T): T[] {
    return this.policies.map((policy, i) => visit(policy.algorithm, entry.states[i]!, policy))
  }

  newEntry(born: number): Entry {
    const states = this.policies.map((policy) => new State(new Float64Array(policy.algorithm.cells(policy))))
    return { states, born, last: 0, blockedUntil: 0, heldUntil: 0, version: {} }
  }
}

/** Keeps state in a Map for as long as the process runs. */
export function mapStore(clock: Clock = () => Math.floor(performance.now() * 1000)): Store {
  const keyspaces = new Map<string, Map<string, Entry>>()
  let isOpen = true
  const now = () => {
    if (isOpen) return clock()
    throw new StoreError('CLOSED', 'the store is closed')
  }
  return {
    local: true,
    keyspace(name, policies) {
      const id = JSON.stringify([name, ...policies.map(({ shape }) => shape)])
      const entries = keyspaces.get(id) ?? new Map<string, Entry>()
      keyspaces.set(id, entries)
      return new MapKeyspace(policies, entries, now)
    },
    now,
    close: () => void (isOpen = false),
  }
}
