import { giveBack } from '../stores/giving-back.js'
import { isDenied } from '../stores/store.js'
import type { Answer, MaybePromise, Part, PlacedPart, Receiver, WholeReceiver } from '../stores/store.js'
import { isWholeDenied, prepareOneStep } from '../stores/together.js'

/**
 * Decides a call on several keys, each part of which is one key and its cost: all are charged, or none if an enforced part is
 * denied (shadow mode enforces none). If a part is known to be denied, nothing is charged. If one store can decide all parts in
 * one atomic step, as one Redis server can (`together`), it does. Otherwise `decideEach` asks the store of each part, and gives
 * back what was charged if one is denied. Returns what `charged` makes of the answers and of the milliseconds that stores took,
 * 0 if they answered at once. For answers that come later (to `receiver`) it returns a promise.
 */
export function decideParts<T>(
  parts: readonly PlacedPart[],
  charged: (answers: readonly Answer[], storeMs: number) => MaybePromise<T>,
): MaybePromise<T> {
  if (parts.some(isKnownDenied)) return tryAll(parts, charged)
  const sentAt = performance.now()
  /** Settles the returned promise. It is set by then, as the receiver gets nothing before this has returned. */
  let settle!: { resolve(made: MaybePromise<T>): void; failed(error: unknown): void }
  const receiver: WholeReceiver = {
    /**
     * Gets the answers, one a part; undefined from a store that cannot decide these keys in one step, for example because a Redis
     * Cluster has them in several slots. Nothing is charged then, so each part is decided on its own.
     */
    answered(answers) {
      if (!answers) return passTo(receiver, decideEach(parts))
      try {
        settle.resolve(charged(answers, performance.now() - sentAt))
      } catch (error) {
        settle.failed(error)
      }
    },
    failed: (error) => settle.failed(error),
  }
  const together = prepareOneStep(parts)
  const answers = together ? together.decide(parts, receiver) : decideEach(parts)
  if (answers && 'length' in answers) return charged(answers, 0)
  if (answers) passTo(receiver, answers)
  return new Promise((resolve, failed) => (settle = { resolve, failed }))
}

/** Passes the answer to `receiver` once the promise resolves, or the error once it rejects. */
export function passTo<T>(receiver: Receiver<T>, answer: Promise<T>): undefined {
  answer.then(
    (later) => receiver.answered(later),
    (error: unknown) => receiver.failed(error),
  )
}

/**
 * Whether a part (one key of a call on several) is known to be denied without asking a store elsewhere; then the whole call is
 * denied. A part whose state is in this process (`isHere`) is peeked at. Any other is known to be denied if its cost never fits,
 * or by a remembered denial of its store. False in shadow mode (not `enforce`), in which a part denies nothing.
 */
function isKnownDenied({ isHere, keyspace, key, cost, enforce }: PlacedPart): boolean {
  if (!enforce) return false
  if (isHere) return isDenied(keyspace.decide('peek', key, cost, 0) as Answer)
  if (keyspace.policies.some(({ capacity }) => cost > capacity)) return true
  return keyspace.known?.(key, cost) !== undefined
}

/**
 * Answers a call on several keys of which one is known to be denied, and charges none of them. Each part gets the answer to a
 * 'try' of its own, which may be what its store said of the key within the last second (as `caller.isDenied` allows).
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
 * Decides the parts of a call (keys with their costs) in two steps, as no store can decide all of them in one, and resolves to one
 * answer a part. First all are tried ('try'), which charges nothing; if an enforced one is denied, these are the answers. Otherwise
 * all are charged ('commit'), under a deadline that counts from the latest 'try' (`since`). If one is denied now, because another
 * call was faster, or fails, the charges of the others are given back; parts that were allowed then get the answers of the first
 * step. Rejects with the failure of a store.
 */
async function decideEach(parts: readonly Part[]): Promise<readonly Answer[]> {
  const caller = {
    gone: false,
    since: 0,
    began(at: number) {
      this.since = Math.max(this.since, at)
    },
  }
  const askAll = (ask: 'try' | 'commit') =>
    parts.map(async ({ keyspace, key, cost }) => keyspace.decide(ask, key, cost, 0, caller))
  const tried = await Promise.all(askAll('try'))
  if (isWholeDenied(parts, tried)) return tried
  const charges = await Promise.allSettled(askAll('commit'))
  const failed = charges.find((charge) => charge.status === 'rejected')
  const answers = charges.map((charge, i) => (charge.status === 'fulfilled' ? charge.value : tried[i]!))
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
  return answers.map((answer, i) => (isDenied(answer) ? answer : tried[i]!))
}
