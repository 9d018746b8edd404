import { giveBack } from '../stores/giving-back.js'
import { isDenied } from '../stores/store.js'
import type { Answer, MaybePromise, Part, PlacedPart, WholeReceiver } from '../stores/store.js'
import { isWholeDenied, programOf } from '../stores/together.js'
import { NOTHING_KNOWN } from './failure.js'

/**
 * Charges all parts or, where an enforced one is denied, none. Parts that are known to be denied ask no store; one program decides
 * all if there is one, otherwise each store its own. Returns what `charged` makes of the answers and of the stores' milliseconds.
 */
export function decideParts<T>(
  parts: readonly PlacedPart[],
  charged: (answers: readonly Answer[], storeMs: number) => MaybePromise<T>,
): MaybePromise<T> {
  if (parts.some(isKnownDenied)) return charged(parts.map(triedUnasked), 0)
  const sentAt = performance.now()
  let settle!: { resolve(made: MaybePromise<T>): void; failed(error: unknown): void }
  const receiver: WholeReceiver = {
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
  if (answers && !(answers instanceof Promise)) return charged(answers, 0)
  if (answers) passTo(receiver, answers)
  return new Promise((resolve, failed) => (settle = { resolve, failed }))
}

/** Hands the answers to `receiver` when the promise resolves, or the error when it rejects. */
function passTo(receiver: WholeReceiver, answers: Promise<readonly Answer[]>): void {
  answers.then(
    (later) => receiver.answered(later),
    (error: unknown) => receiver.failed(error),
  )
}

/**
 * Whether one key denies the whole call by what this process knows, without asking a store elsewhere: its state is in
 * this process, or the store has denied such a call a moment ago. A limiter in shadow mode denies nothing.
 */
function isKnownDenied({ isHere, keyspace, key, cost, enforce }: PlacedPart): boolean {
  if (!enforce) return false
  const known = isHere ? (keyspace.decide('peek', key, cost, 0) as Answer) : keyspace.known?.(key, cost)
  return known !== undefined && isDenied(known)
}

/**
 * The answer about one key of a call that is known to be denied, without asking a store elsewhere and without a
 * charge.
 */
function triedUnasked({ isHere, keyspace, key, cost }: PlacedPart): Answer {
  return isHere ? (keyspace.decide('try', key, cost, 0) as Answer) : (keyspace.known?.(key, cost) ?? UNASKED)
}

/** The answer of a part whose store was not asked, because another part was known to be denied: nothing is known of it. */
const UNASKED: Answer = { ...NOTHING_KNOWN, at: 0, resetAt: 0, from: 'none' }

/**
 * Decides parts that no single program holds. All are tried; if one is denied, nothing was charged. Otherwise all are charged at
 * once. If one is denied now, because another call was faster, the charges of the others are undone.
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
