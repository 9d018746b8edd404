import { type Answer, type Caller, type DatedCharge, isDenied, type Keyspace } from './store.js'

/**
 * Returns the charge that an answer to a call of `cost` units stands for, so that units of it can be given back later. Units of a
 * lease, a part of the allowance that was taken in advance, were charged earlier: at `chargedAt`. Undefined if nothing was charged:
 * the call was denied, its key is exempt, or the store could not decide and the call passed without another keyspace being asked
 * (`degraded.by`).
 */
export function chargeOf(answer: Answer, cost: number): DatedCharge | undefined {
  const { at, now, chargedAt, epoch, degraded } = answer
  if (isDenied(answer) || answer.from === 'none' || (degraded && !degraded.by)) return undefined
  return { at: chargedAt ?? at, cost, decidedAt: chargedAt ?? now, epoch }
}

/**
 * Gives back the units that a call of `cost` units on `key` was charged, as its answer says. A booking (a charge at a later instant
 * or one that can be undone) is cancelled, which may restore the state as it was before. Any other charge is released, as far as
 * its units still count. Does nothing if nothing was charged.
 */
export async function giveBack(
  keyspace: Pick<Keyspace, 'cancel' | 'correct'>,
  key: string,
  cost: number,
  answer: Answer,
  caller?: Caller,
): Promise<void> {
  const charge = chargeOf(answer, cost)
  if (!charge || cost === 0) return
  if (answer.booking) await keyspace.cancel(answer.booking, caller)
  else await keyspace.correct({ kind: 'release', key, charge, units: cost })
}
