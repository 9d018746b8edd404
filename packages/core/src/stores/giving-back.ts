import { type Answer, isDenied, type Keyspace } from './store.js'

/** Gives back the units that a `book` charged, whether at once or ahead of now. */
export async function giveBack(
  keyspace: Pick<Keyspace, 'cancel' | 'correct'>,
  key: string,
  cost: number,
  answer: Answer,
): Promise<void> {
  const isCharged = !answer.degraded || answer.degraded.by
  if (isDenied(answer) || !isCharged || cost === 0) return
  const { booking, at, now } = answer
  if (booking) await keyspace.cancel(booking)
  else await keyspace.correct({ kind: 'release', key, charge: { at, cost, decidedAt: now }, units: cost })
}
