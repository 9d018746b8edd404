import { type Answer, type Caller, type DatedCharge, isDenied, type Keyspace } from './store.js'

/**
 * The charge that an answer to a call of `cost` units stands for; undefined if the call was denied, or allowed without
 * counting.
 */
export function chargeOf(answer: Answer, cost: number): DatedCharge | undefined {
  const { at, now, chargedAt, degraded } = answer
  if (isDenied(answer) || (degraded && !degraded.by)) return undefined
  return { at: chargedAt ?? at, cost, decidedAt: chargedAt ?? now }
}

/** Gives back the units that an answer to a call of `cost` units has charged, whether at once or ahead of now. */
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
