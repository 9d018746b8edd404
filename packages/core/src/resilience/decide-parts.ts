import { giveBack } from '../stores/giving-back.js'
import { isDenied } from '../stores/store.js'
import type { Answer, MaybePromise, Part, PlacedPart, WholeReceiver } from '../stores/store.js'
import { isWholeDenied, programOf } from '../stores/together.js'
import { NOTHING_KNOWN } from './failure.js'

/**
 * Decides a call on several keys, of which each part is one key and its cost: all are charged, or none if an enforced one is
 * denied (shadow mode enforces none). If a part is known to be denied, no store is asked. A program decides keys in one atomic
 * step, as one Redis server does: if all parts have the same, it decides them. Otherwise `decideEach` asks the store of each, and
 * gives back what was charged if one is denied. Returns what `charged` makes of the answers and of the milliseconds that stores
 * took, 0 if they answered at once. Later answers come to `receiver` after the return, and settle the promise that was returned.
 */
export function decideParts<T>(
  parts: readonly PlacedPart[],
  charged: (answers: readonly Answer[], storeMs: number) => MaybePromise<T>,
): MaybePromise<T> {
  if (parts.some(isKnownDenied)) return charged(parts.map(triedUnasked), 0)
  const sentAt = performance.now()
  let settle!: { resolve(made: MaybePromise<T>): void; failed(error: unknown): void }
  const receiver: WholeReceiver = {
    /**
     * Gets the answers, one a part. From the program they are undefined if it cannot decide these keys together, for example
     * because a Redis Cluster has them in several slots. Nothing is charged then, so each part is decided on its own.
     */
    answered(answers) {
      if (!answers) return passTo(receiver, decideEach(parts)) // these keys cannot go together
      try {
        settle.resolve(charged(answers, performance.now() - sentAt))
      } catch (error) {
        settle.failed(error)
      }
    },
    failed: (error) => settle.failed(error),
  }
  const program = programOf(parts)
  const answers = program ? program.decide(parts, receiver) : decideEach(parts)
  if (answers && 'length' in answers) return charged(answers, 0)
  if (answers) passTo(receiver, answers)
  return new Promise((resolve, failed) => (settle = { resolve, failed }))
}

/** Passes the answers of a call on several keys to `receiver` when their promise resolves, or the error when it rejects. */
function passTo(receiver: WholeReceiver, answers: Promise<readonly Answer[]>): void {
  answers.then(
    (later) => receiver.answered(later),
    (error: unknown) => receiver.failed(error),
  )
}

/**
 * Whether a part (one key of a call on several) is known to be denied without asking a store elsewhere, so that the whole call
 * is. If its state is in this process (`isHere`) that is asked; otherwise a remembered denial of its store may say so. In shadow
 * mode (not `enforce`) a part denies nothing.
 */
function isKnownDenied({ isHere, keyspace, key, cost, enforce }: PlacedPart): boolean {
  if (!enforce) return false
  const known = isHere ? (keyspace.decide('peek', key, cost, 0) as Answer) : keyspace.known?.(key, cost)
  return known !== undefined && isDenied(known)
}

/**
 * The answer about one part of a call on several keys that is known to be denied. Nothing is charged and no store elsewhere is
 * asked: a part whose state is elsewhere gets its remembered denial, or UNASKED if there is none.
 */
function triedUnasked({ isHere, keyspace, key, cost }: PlacedPart): Answer {
  return isHere ? (keyspace.decide('try', key, cost, 0) as Answer) : (keyspace.known?.(key, cost) ?? UNASKED)
}

/** The answer of a part whose store was not asked, because another part was known to be denied: nothing is known of it. */
const UNASKED: Answer = { ...NOTHING_KNOWN, at: 0, resetAt: 0, from: 'none' }

/**
 * Decides the parts of a call (keys with their costs) that no single program holds, in two steps, and resolves to one answer a
 * part. First all are tried ('try'), which charges nothing; if an enforced one is denied, that is the result. Otherwise all are
 * charged ('reserve'). If one of them is denied now, because another call was faster, or fails, the charges of the others are
 * given back; parts that were allowed then get the answers of the first step. Rejects with the failure of a store.
 */
async function decideEach(parts: readonly Part[]): Promise<readonly Answer[]> {
  const caller = { gone: false, unsent: true }
  const all = (ask: 'try' | 'reserve') =>
    parts.map(async ({ keyspace, key, cost }) => keyspace.decide(ask, key, cost, 0, caller))
  const first = await Promise.all(all('try'))
  if (isWholeDenied(parts, first)) return first
  const charges = await Promise.allSettled(all('reserve'))
  const failed = charges.find((charge) => charge.status === 'rejected')
  const answers = charges.map((charge, i) => (charge.status === 'fulfilled' ? charge.value : first[i]!))
  if (!failed && !isWholeDenied(parts, answers)) return answers
  caller.gone = true
  // Where that fails, the units stay charged until they leave the window or drain.
  await Promise.allSettled(
    parts.map(async ({ keyspace, key, cost }, i) => {
      const charge = charges[i]!
      if (charge.status === 'rejected') return
      await giveBack(charge.value.degraded?.by ?? keyspace, key, cost, charge.value, caller)
    }),
  )
  if (failed) throw failed.reason
  return answers.map((answer, i) => (isDenied(answer) ? answer : first[i]!))
}
