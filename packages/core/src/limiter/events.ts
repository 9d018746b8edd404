import type { Crossing, Notice, Outage } from '../stores/store.js'
import { Listeners } from '../values/listeners.js'
import { warnProcess, warnProcessOnce } from '../values/process-warning.js'
import { ANSWER, type Decision } from './decision.js'
import type { RecordChange } from './known-records.js'
import type { KeyOverride } from './overrides.js'

/** The events of a limiter, by name. Fields of one name mean the same in all events of Sluice. */
export interface LimiterEvents {
  /** Every decision of `consume`, `decide`, `acquire` and `reserve`. A `peek` is no traffic and is not reported. */
  decision: DecisionEvent
  /**
   * The store stopped deciding. Emitted once until it has recovered. `reason` is the first decision's `degraded`, `cause` the
   * code below it.
   */
  degraded: LimiterEvent<'degraded'> & Outage
  /** The store decides again, after `decisions` degraded decisions. */
  recovered: LimiterEvent<'recovered'> & Outage & { readonly decisions: number }
  /** A likely mistake in the set-up. Emitted once per code. */
  warning: LimiterEvent<'warning'> & { readonly code: string; readonly message: string }
  /** The store was full and removed a key that had consumed something. */
  evicted: LimiterEvent<'evicted'> & { readonly key: string }
  /** Unreadable state of a key was discarded. */
  healed: LimiterEvent<'healed'> & { readonly key: string }
  /**
   * A charge has crossed a share of a limit, one of the option `nearing`: emitted in the process that made it, once for each key and
   * window in the whole fleet, and again after a giving back below the share.
   */
  nearing: LimiterEvent<'nearing'> & Crossing
  /** A record of a key (an override, a block, a hold) was set, was removed or has ended, as this process has learned. */
  override: LimiterEvent<'override'> & {
    readonly key: string
    readonly change: RecordChange
    readonly record: KeyOverride
  }
}

/** The fields of every event of a limiter. */
interface LimiterEvent<Type extends string> {
  readonly type: Type
  /** Name of the limiter. */
  readonly limiter: string
}

/** One decision on traffic, as the 'decision' event reports it. */
export interface DecisionEvent extends LimiterEvent<'decision'> {
  readonly key: string
  /** `decide` and `reserve` are reported as 'consume'. */
  readonly operation: 'consume' | 'acquire'
  /** Units that the call asked for. */
  readonly cost: number
  /** Whether it was charged: not if it was denied or only read, nor if another part of its whole was denied. */
  readonly charged: boolean
  /** The keys that were decided together by `consumeAll` or `reserveAll`; 1 for any other call. */
  readonly together: number
  readonly decision: Decision
  readonly decidedBy: DecidedBy
  /** Milliseconds that the call waited for answers of a store elsewhere; 0 if it asked none. */
  readonly storeMs: number
}

/**
 * The decider of a call: a 'memory' store; a 'store' elsewhere; the 'cache' of denials; a 'lease'; 'local', the failure mode
 * that counts in this process; 'none', if nothing was counted: a limit of 0, and the failure modes 'allow' and 'deny'. A call that
 * is denied whatever its store says, as its cost never fits, has the decider that says how its key stands.
 */
export type DecidedBy = 'memory' | 'store' | 'cache' | 'lease' | 'local' | 'none'

export type Listener<E extends keyof LimiterEvents> = (event: LimiterEvents[E]) => void

/** Counts a decision by the parts of its event. */
export type DecisionCounter = (
  decision: Decision,
  operation: DecisionEvent['operation'],
  decidedBy: DecidedBy,
  storeMs: number,
  together: number,
) => void

const COUNTER: unique symbol = Symbol.for('sluice.listener.counter') as never

/**
 * Makes a listener of decisions that calls `count` for each, for metrics. The listener carries `count` (as COUNTER), so that a
 * limiter whose listeners are all of this kind calls it directly and makes no event object, which costs more than counting. If the
 * listener does get an event, as beside an ordinary listener or from a limiter of another copy of this package, it counts by the
 * fields of that.
 */
export function counting(count: DecisionCounter): Listener<'decision'> {
  const listener = ({ decision, operation, decidedBy, storeMs, together }: DecisionEvent): void =>
    count(decision, operation, decidedBy, storeMs, together)
  return Object.assign(listener, { [COUNTER]: count })
}

/** Returns what these listeners of decisions count by, if each was made by `counting`; undefined if one needs an event. */
function countersOf(listeners: readonly CountingListener[]): readonly DecisionCounter[] | undefined {
  const counters = listeners.flatMap((listener) => listener[COUNTER] ?? [])
  return counters.length === listeners.length ? counters : undefined
}

type CountingListener = Listener<'decision'> & { readonly [COUNTER]?: DecisionCounter }

const NAMES = [
  'decision',
  'degraded',
  'recovered',
  'warning',
  'evicted',
  'healed',
  'nearing',
  'override',
] as const

/**
 * The listeners and warnings of one limiter. An error that a listener throws becomes a warning and does not affect the
 * limiter.
 */
export class Events {
  readonly listeners = new Listeners<LimiterEvents>(NAMES, (name, error) => {
    const message = `a listener of '${name}' threw: ${String(error)}`
    this.warn('LISTENER_FAILED', message, 'LISTENER_FAILED', name === 'warning')
  })
  readonly #warned = new Set<string>()
  /** Listeners of decisions, and their counters, as of the last decision. */
  #heard: readonly Listener<'decision'>[] = []
  #counters: readonly DecisionCounter[] | undefined = []

  /** Begins without listeners. `limiter` is the name in all events; `isLocal`: decisions are made by a store in this process. */
  constructor(
    private readonly limiter: string,
    private readonly isLocal: boolean,
  ) {}

  /**
   * Reports the decision of one call to the listeners of 'decision', of which there must be some. `cost` is what the call asked
   * for, `storeMs` the milliseconds that it waited for a store elsewhere, and `together` the number of keys decided in one call.
   * If all listeners only count, as metrics do, their functions (`#counters`) are called and no event object is made, which would
   * cost more than counting. `#counters` are looked up anew when the list of listeners is another than `#heard`.
   */
  decided(
    operation: DecisionEvent['operation'],
    cost: number,
    decision: Decision,
    storeMs: number,
    together = 1,
  ): void {
    const { degraded, from = this.isLocal ? 'memory' : 'store' } = decision[ANSWER]
    const fallback = degraded?.by ? 'local' : 'none'
    const decidedBy: DecidedBy = degraded ? fallback : from
    const { limiter, listeners } = this
    const heard = listeners.heard.decision ?? this.#heard
    if (heard !== this.#heard) {
      this.#heard = heard
      this.#counters = countersOf(heard)
    }
    if (this.#counters) {
      for (const count of this.#counters) {
        try {
          count(decision, operation, decidedBy, storeMs, together)
        } catch (error) {
          listeners.failed('decision', error)
        }
      }
      return
    }
    const { key, charged } = decision
    const type = 'decision' as const
    const event = { type, limiter, key, operation, cost, charged, together, decision, decidedBy, storeMs }
    listeners.emit(type, event)
  }

  /**
   * Emits the event for a notice of the store, such as an evicted key or an outage, if the event has listeners; a warning is always
   * reported. A store may give notice in the middle of an operation, so listeners are called in the next microtask: they may call
   * the store.
   */
  receive(notice: Notice): void {
    if (!this.listeners.heard[notice.event] && notice.event !== 'warning') return
    queueMicrotask(() => {
      if (notice.event === 'warning') return this.warn(notice.code, notice.message, notice.id)
      const { event: type, ...payload } = notice
      this.listeners.emit(type, { type, limiter: this.limiter, ...payload } as LimiterEvents[typeof type])
    })
  }

  /**
   * Reports a likely mistake in the set-up as a 'warning' event, once for each `id`. If only passive listeners, such as metrics,
   * or none at all get the event, a process warning is written too, so that somebody sees it: `processMessage`, once for all
   * limiters, or else `message` with the limiter's name. `hasNoEvent` leaves the event out, where one of its listeners has thrown.
   */
  warn(code: string, message: string, id = code, hasNoEvent = false, processMessage?: string): void {
    if (this.#warned.has(id)) return
    this.#warned.add(id)
    if (hasNoEvent || !this.listeners.hasActive('warning')) {
      if (processMessage === undefined) warnProcess(code, `limiter '${this.limiter}': ${message}`)
      else warnProcessOnce(code, processMessage)
    }
    if (!hasNoEvent) this.listeners.emit('warning', { type: 'warning', limiter: this.limiter, code, message })
  }
}
