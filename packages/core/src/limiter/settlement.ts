import type { Policy } from '../algorithms/contract/policy.js'
import { type Answer, type DatedCharge, isDenied, type Keyspace } from '../stores/store.js'
import { storedKey } from '../values/key.js'

/**
 * Corrects the charge of an answer, `cost` units of a caller's key, to the real cost, in the keyspace that decided:
 * `keyspace`, unless the answer names another. Returns the units that took effect, below 0 if units were given back.
 */
export async function settleCharge(
  answer: Answer,
  keyspace: Keyspace,
  callerKey: string,
  cost: number,
  realCost: number,
): Promise<number> {
  const difference = realCost - cost
  if (difference === 0 || !isCharged(answer)) return 0
  const charged = answer.degraded?.by ?? keyspace
  const key = storedKey(callerKey)
  if (difference > 0) return charged.correct({ kind: 'charge', key, cost: difference })
  const charge = chargeOf(answer, cost)
  const given = await charged.correct({ kind: 'release', key, charge, units: -difference })
  return given === 0 ? 0 : -given
}

/** The answer after `units` of its charge were given back. */
export function answerAfterGivingBack(answer: Answer, policies: readonly Policy[], units: number): Answer {
  const { parts, remaining, binding } = answer
  const left = policies.map(({ capacity }, i) =>
    Math.min(capacity, Math.floor((parts ? parts[3 * i + 1]! : remaining) + units)),
  )
  const least = Math.min(...left)
  return {
    ...answer,
    remaining: least,
    binding: parts ? left.indexOf(least) : binding,
    parts: parts?.map((part, i) => (i % 3 === 1 ? left[(i - 1) / 3]! : part)),
  }
}

/** Whether a keyspace holds the charge. */
function isCharged(answer: Answer): boolean {
  const { degraded } = answer
  return !isDenied(answer) && !(degraded && !degraded.by)
}

function chargeOf({ now, at, chargedAt }: Answer, cost: number): DatedCharge {
  return chargedAt === undefined
    ? { at, cost, decidedAt: now }
    : { at: chargedAt, cost, decidedAt: chargedAt }
}
