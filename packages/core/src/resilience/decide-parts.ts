import { giveBack } from '../stores/giving-back.js'
import { isDenied } from '../stores/store.js'
import type { Answer, MaybePromise, Part, PlacedPart, Receiver, WholeReceiver } from '../stores/store.js'
import { isWholeDenied, programOf } from '../stores/together.js'

/**
 * Decides a call on several keys, of which each part is one key and its cost: all are charged, or none if an enforced one is
 * denied (shadow mode enforces none). If a part is known to be denied, nothing is tried to be charged. A program decides keys in one
 * atomic step, as one Redis server does: if all parts have the same, it decides them. Otherwise `decideEach` asks the store of each,
 * and gives back what was charged if one is denied. Returns what `charged` makes of the answers and of the milliseconds that stores
 * took, 0 if they answered at once. Later answers come to `receiver` after the return, and settle the promise that was returned.
 */
export function decideParts<T>(
  parts: readonly PlacedPart[],
  charged: (answers: readonly Answer[], storeMs: number) => MaybePromise<T>,
): MaybePromise<T> {
  if (parts.some(isKnownDenied)) return tryAll(parts, charged)
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

/** Passes an answer to `receiver` when its promise resolves, or the error when it rejects. */
export function passTo<T>(receiver: Receiver<T>, answer: Promise<T>): undefined {
  answer.then(
    (later) => receiver.answered(later),
    (error: unknown) => receiver.failed(error),
  )
}

/**
 * Whether a part (one key of a call on several) is known to be denied without asking a store elsewhere, so that the whole call
 * is. If its state is in this process (`isHere`) that is asked; otherwise its cost never fits, or a remembered denial of its store
 * says so. In shadow mode (not `enforce`) a part denies nothing.
 */
function isKnownDenied({ isHere, keyspace, key, cost, enforce }: PlacedPart): boolean {
  if (!enforce) return false
  if (isHere) return isDenied(keyspace.decide('peek', key, cost, 0) as Answer)
  if (keyspace.policies.some(({ capacity }) => cost > capacity)) return true
  return keyspace.known?.(key, cost) !== undefined
}

/**
 * Answers a call on several keys of which one is known to be denied, and charges none: each part says how it stands by itself, as
 * far as its store has said so within the last second or says so now.
 */
function tryAll<T>(
  parts: readonly PlacedPart[],
  charged: (answers: readonly Answer[], storeMs: number) => MaybePromise<T>,
): MaybePromise<T> {
  const sentAt = performance.now()
  const caller = { gone: false, isDenied: true }
  const answers = parts.map(({ keyspace, key, cost }) => keyspace.decide('try', key, cost, 0, caller))
  const known = answers.filter((answer) => 'now' in answer)
  if (known.length === answers.length) return charged(known, 0)
  return Promise.all(answers.map(async (answer) => answer)).then((all) =>
    charged(all, performance.now() - sentAt),
  )
}

/**
 * Decides the parts of a call (keys with their costs) that no single program holds, in two steps, and resolves to one answer a
 * part. First all are tried ('try'), which charges nothing; if an enforced one is denied, that is the result. Otherwise all are
 * charged ('commit'). If one of them is denied now, because another call was faster, or fails, the charges of the others are
 * given back; parts that were allowed then get the answers of the first step. Rejects with the failure of a store.
 */
async function decideEach(parts: readonly Part[]): Promise<readonly Answer[]> {
  const caller = {
    gone: false,
    since: 0,
    began(at: number) {
      this.since = Math.max(this.since, at)
    },
  }
  const all = (ask: 'try' | 'commit') =>
    parts.map(async ({ keyspace, key, cost }) => keyspace.decide(ask, key, cost, 0, caller))
  const first = await Promise.all(all('try'))
  if (isWholeDenied(parts, first)) return first
  const charges = await Promise.allSettled(all('commit'))
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
