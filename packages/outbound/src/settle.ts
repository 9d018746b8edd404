import type { Decision, Duration } from '@sluice/core'
import {
  checkCost,
  custom,
  type DeclarationOf,
  duration,
  func,
  REFUSED,
  required,
  type Settings,
  warnProcessOnce,
  whileExtended,
} from '@sluice/core/internal'
import { MOST_BYTES } from './other-side/json.js'
import type { OutboundReply } from './request.js'

/** How the calls of a client reserve their cost, and settle it by what they have used. */
export interface SettleOptions {
  /**
   * Units that a call has used, by the end of its reply; undefined: its cost. `text` has the last 65,536 characters of the body as far as it
   * arrived (`isWhole`: to its end): the usage that a stream states last. It is '' of a body of bytes, of a Node stream, and of one
   * that the client leaves compressed.
   */
  readonly units: (outcome: {
    readonly reply: OutboundReply
    readonly text: string
    readonly isWhole: boolean
  }) => number | undefined
  /**
   * How long after the death of its process a call's units are given back, 1s to 30 days; a number is in milliseconds.
   * @default '1m'
   */
  readonly ttl?: Duration
  /**
   * `'cost'`: a call without a reply, or of a process that died, stays charged, as one whose provider may bill it.
   * @default nothing stays charged
   */
  readonly atEnd?: 'cost'
}

export const SETTLE = {
  units: required(func<SettleOptions['units']>()),
  ttl: duration('1s', '30d', '1m'),
  atEnd: custom("'cost'", (value) => (value === 'cost' ? value : REFUSED)),
} satisfies DeclarationOf<SettleOptions>

export type SettleSettings = Settings<typeof SETTLE>

/** Tells what a call used; undefined where no reply does. */
export type Used = (() => number | undefined) | undefined

/** Of a call that was refused. */
export const USED_NOTHING: Used = () => 0
/** Of a call that got a reply, if nothing says what it used: its cost. */
export const USED_COST: Used = () => undefined

/**
 * Extends the reservation of a decision again and again, while its call waits for further turns and is under way. `settleHeld` or
 * `giveBack` ends that, and settles the reservation. A store that fails is reported once.
 */
export function holdUntilEnd(decision: Decision, { ttl, atEnd }: SettleSettings, cost: number): void {
  const { reservation } = decision
  if (!reservation) return
  const usedUnits = new Promise<number>((resolve) => void ends.set(decision, resolve))
  const settleAtEnd = async (): Promise<unknown> => reservation.settle(await usedUnits)
  whileExtended(reservation, { ttl, cost, atEnd: atEnd ? cost : 0 }, settleAtEnd, failed).catch(failed)
}

/**
 * Settles the reservations of an attempt at the units that `used` returns, or at `cost` if it returns undefined or throws; an error
 * is reported once. Without `used`, as no reply came, nothing stays charged, or with `atEnd` the cost.
 */
export function settleHeld(
  decisions: readonly Decision[],
  { atEnd }: SettleSettings,
  cost: number,
  used: Used = () => (atEnd ? cost : 0),
): void {
  let units = cost
  try {
    units = checkCost(used() ?? cost, 'units')
  } catch (error) {
    failed(error)
  }
  for (const decision of decisions) ends.get(decision)?.(units)
}

/** Gives back what was charged for a call that is not made after all. If the store fails, it stays charged. */
export function giveBack(decision: Decision): void {
  const endReservation = ends.get(decision)
  if (endReservation) endReservation(0)
  else decision.settle(0).catch(() => {})
}

/** Of each decision whose reservation is extended (`holdUntilEnd`), the function that ends that and settles it at so many units. */
const ends = new WeakMap<Decision, (units: number) => void>()

function failed(error: unknown): void {
  warnProcessOnce('SETTLE_FAILED', `a call was not settled by what it used: ${String(error)}`)
}

/** The end of a reply's body, in which the hook `settle.units` reads what a call used. Without the hook it keeps nothing. */
export class BodyEnd {
  #text = ''
  readonly #decoder = new TextDecoder()

  constructor(
    readonly settle: SettleSettings | undefined,
    readonly reply: OutboundReply,
  ) {}

  /** Adds a piece of the body. At least the last 65,536 characters of the body are kept. */
  readonly add = (chunk: Uint8Array | string): void => {
    if (!this.settle) return
    this.#text += typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true })
    if (this.#text.length > 2 * MOST_BYTES) this.#text = this.#text.slice(-MOST_BYTES)
  }

  /** Returns a function that asks the hook what the call used. `isWhole`: all of the body has arrived. */
  used(isWhole: boolean): Used {
    const { settle, reply } = this
    return settle && (() => settle.units({ reply, text: this.#text.slice(-MOST_BYTES), isWhole }))
  }
}
