import { NOTHING_KNOWN } from '../resilience/failure.js'
import { giveBack } from '../stores/giving-back.js'
import { type Answer, isDenied, type MaybePromise, type Part, type Store } from '../stores/store.js'
import { decideAtOnce, isWholeDenied } from '../stores/together.js'
import type { Decision } from './decision.js'
import type { PolicySet } from './policy-set.js'

/** A part of a call on several keys, as its limiter opens it. */
export interface LimiterPart extends Part {
  readonly set: PolicySet
  /** Limiters of one store and name share the state of a key. */
  readonly store: Store
  /** Whether the store is in this process, or none is asked. */
  readonly isHere: boolean
  readonly callerKey: string
  /** The sum, if the caller has named the key twice. */
  cost: number
  decision?: Decision
}

/** Charges every part that fits, or none if an enforced one does not. */
export function decideParts(parts: readonly LimiterPart[]): MaybePromise<readonly Answer[]> {
  if (parts.every(({ isHere }) => isHere)) return decideAtOnce(parts)
  return deniedUnasked(parts) ?? decideElsewhere(parts)
}

/** The answers where one part is known to be denied, so that no store elsewhere is asked. */
function deniedUnasked(parts: readonly LimiterPart[]): readonly Answer[] | undefined {
  const answerOf = ({ isHere, keyspace, key, cost }: LimiterPart, ask: 'peek' | 'try'): Answer =>
    isHere ? (keyspace.decide(ask, key, cost, 0) as Answer) : (keyspace.known?.(key, cost) ?? UNASKED)
  const isKnown = isWholeDenied(
    parts,
    parts.map((part) => answerOf(part, 'peek')),
  )
  return isKnown ? parts.map((part) => answerOf(part, 'try')) : undefined
}

/** The answer of a part whose store was not asked, because another part was known to be denied: nothing is known of it. */
const UNASKED: Answer = { ...NOTHING_KNOWN, at: 0, resetAt: 0, from: 'none' }

async function decideElsewhere(parts: readonly LimiterPart[]): Promise<readonly Answer[]> {
  const together = parts[0]!.keyspace.together
  const isOneProgram = parts.every(({ keyspace }) => keyspace.together?.program === together?.program)
  const answers = together && isOneProgram ? await together.decide(parts) : undefined
  return answers ?? decideApart(parts)
}

/**
 * Decides parts that no single program holds. All are tried; if one is denied, nothing was charged. Otherwise all are charged at
 * once. If one is denied now, because another call was faster, the charges of the others are undone.
 */
async function decideApart(parts: readonly Part[]): Promise<readonly Answer[]> {
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
