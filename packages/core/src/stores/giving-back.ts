import { type Answer, type Caller, type DatedCharge, isDenied, type Keyspace } from './store.js'

/**
 * Returns the charge that an answer to a call of `cost` units stands for, so that units of it can be given back later: its
 * instant, its cost, when it was decided, in microseconds, and the epoch of the state that was charged. Undefined if nothing was charged: the call was denied, its key is exempt, or the
 * store could not decide and the call was let pass without asking another keyspace (`degraded.by`). Units of a lease, a part of
 * the allowance taken in advance, were charged earlier: at `chargedAt`.
 */
export function chargeOf(answer: Answer, cost: number): DatedCharge | undefined {
  const { at, now, chargedAt, epoch, degraded } = answer
  if (isDenied(answer) || answer.from === 'none' || (degraded && !degraded.by)) return undefined
  return { at: chargedAt ?? at, cost, decidedAt: chargedAt ?? now, epoch }
}

/**
 * Gives back the units that an answer to a call of `cost` units has charged to `key`. A booking, a charge at a later instant or
 * one that can be undone, is cancelled, which may restore the state as it was before; any other charge is released, as far as its
 * units still count. Does nothing where nothing was charged.
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
