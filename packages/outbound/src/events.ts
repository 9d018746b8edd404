import type { Decision, LimitChange, LimiterEvents } from '@sluice/core'
import { Listeners, nowMs, warningOnce } from '@sluice/core/internal'
import type { ExceededReason } from './exceeded.js'
import type { Turn } from './turn.js'

/** The events of a client's calls, for logs and metrics. Fields of one name mean the same in all events of Sluice. */
export type OutboundEvent =
  /** A call that had to wait goes out. */
  | (CallEvent & {
      readonly type: 'waited'
      readonly waitMs: number
      /** Undefined in a queue without a limiter. */
      readonly decision: Decision | undefined
    })
  /** A call is refused and does not go out. */
  | (CallEvent & {
      readonly type: 'denied'
      readonly reason: ExceededReason
      /** Undefined where the limiter was not asked. */
      readonly decision: Decision | undefined
    })
  /** The other side asked for a pause. The key is held for the whole fleet. `status` is that of the reply, if there was one. */
  | (ClientEvent & {
      readonly type: 'held'
      readonly key: string
      readonly status: number | undefined
      readonly holdMs: number
    })
  /** The unknown rate of a key has changed, in this process: in units per window. */
  | (ClientEvent & LimitChange & { readonly type: 'adapted'; readonly key: string })
  /** A call has crossed a share of its limit, an option `nearing` of the limiter. */
  | (ClientEvent & LimiterEvents['nearing'])
  /** The first call of this process after a pause goes out. */
  | (ClientEvent & { readonly type: 'resumed'; readonly key: string })
  /** A call begins to wait, for its first or a further attempt. */
  | (AttemptEvent & { readonly type: 'queued' })
  /** It is sent, or its function is called. */
  | (AttemptEvent & { readonly type: 'started' })
  /** It was answered, or its function succeeded, and it is not made again. */
  | (AttemptEnd & { readonly type: 'done' })
  /** It was refused, or its function failed, and it is made again. */
  | (AttemptEnd & { readonly type: 'retried' })
  /** It got no answer, or its function failed, and it is not made again. */
  | (AttemptEnd & { readonly type: 'failed'; readonly error: unknown })
  /** No call waits any more. */
  | (ClientEvent & { readonly type: 'empty' })
  /** No call waits or is under way any more. */
  | (ClientEvent & { readonly type: 'idle' })

/** The events of a queue made by `createQueue`. `queue` is its name. */
export type QueueEvent = { readonly queue: string } & (
  | OutboundEvent
  /** `pause()` was called. */
  | (ClientEvent & { readonly type: 'paused' })
  /** `resume()` was called. */
  | (ClientEvent & { readonly type: 'continued' })
)

/** The fields that all events have. `limiter` is the name of the client's limiter; undefined in a queue without one. */
export interface ClientEvent {
  readonly limiter: string | undefined
}

/** The fields that all events of one call have. `cost` is the units of the call. */
export interface CallEvent extends ClientEvent {
  readonly key: string
  readonly cost: number
  readonly priority: number
}

/** One attempt of a call. `attempt` counts from 1. */
export interface AttemptEvent extends CallEvent {
  readonly attempt: number
}

/** The end of one attempt. `runMs` is how long the answer, or the function, took. */
export interface AttemptEnd extends AttemptEvent {
  readonly runMs: number
  /** Of the reply, if there was one. */
  readonly status: number | undefined
  /**
   * Why a refused call is not made again: its client had no budget for it, it would be later than `maxWait`, or the refusal is
   * final.
   */
  readonly givenUp: 'budget' | 'maxWait' | 'final' | undefined
}

/** The events of a client, by type. */
export type OutboundEvents = { readonly [E in OutboundEvent as E['type']]: E }

/** The events of a queue, by type. */
export type QueueEvents = { readonly [E in QueueEvent as E['type']]: E }

/** The types of events that clients report. */
export const OUTBOUND_EVENTS = [
  'waited',
  'denied',
  'held',
  'resumed',
  'adapted',
  'nearing',
  'queued',
  'started',
  'done',
  'retried',
  'failed',
  'empty',
  'idle',
] as const satisfies readonly OutboundEvent['type'][]

/** The types of events that queues report. */
export const QUEUE_EVENTS: readonly QueueEvent['type'][] = [...OUTBOUND_EVENTS, 'paused', 'continued']

/** The names in every event of a client; that of a queue only in the events of queues. */
export interface EventSource {
  readonly queue?: string
  readonly limiter: string | undefined
}

/** The events of one client. Made with its first listener: without one, calls pass nothing of this. */
export class CallEvents {
  readonly #source: EventSource
  readonly #listeners: Listeners<QueueEvents>

  /**
   * The events of one queue, or of one client of a limiter. `source` has the names that each event states. The first time that a
   * listener throws, the process is warned, with these names.
   */
  constructor(source: EventSource) {
    const { queue, limiter } = source
    this.#source = source
    this.#listeners = new Listeners(
      QUEUE_EVENTS,
      warningOnce(queue === undefined ? `a client of limiter '${limiter}'` : `queue '${queue}'`),
    )
  }

  /** Adds a listener. Returns a function that removes it. */
  on<K extends keyof QueueEvents>(type: K, listener: (event: QueueEvents[K]) => void): () => void {
    return this.#listeners.on(type, listener)
  }

  /** Whether an event has listeners. */
  hears(type: keyof QueueEvents): boolean {
    return this.#listeners.heard[type] !== undefined
  }

  /** Emits an event with the names of its queue and limiter. */
  emit<K extends keyof QueueEvents>(
    type: K,
    fields: Omit<QueueEvents[K], 'type' | 'queue' | 'limiter'>,
  ): void {
    this.#listeners.emit(type, { type, ...this.#source, ...fields } as unknown as QueueEvents[K])
  }

  /** A listener of the limiters, which hands their event on. */
  readonly nearing = (event: LimiterEvents['nearing']): void => this.emit('nearing', event)

  /** Reports that an attempt begins. */
  started(turn: Turn): void {
    this.emit('started', attemptOf(turn))
  }

  /**
   * Reports the end of an attempt: as retried if another one follows (`again`), as failed if `outcome` holds an error, otherwise
   * as done. `runMs` is the time since the attempt went out, in milliseconds.
   */
  ended(turn: Turn, again: boolean, outcome: object): void {
    const type = again ? 'retried' : 'error' in outcome ? 'failed' : 'done'
    const { verdict, givenUp } = turn.ending
    const fields = { ...attemptOf(turn), runMs: nowMs() - turn.sentAt, status: verdict.status, givenUp }
    this.emit(type, type === 'failed' ? { ...fields, ...outcome } : fields)
  }
}

/** The fields of an event about an attempt. */
function attemptOf({ terms: { keys, cost, priority }, attempt }: Turn) {
  return { key: keys[0], cost, priority, attempt }
}
