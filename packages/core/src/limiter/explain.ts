import { storedKey } from '../values/key.js'
import { Decision, type DecisionRecord, type PolicyState } from './decision.js'
import { type KeyOverride, type OverriddenLimiter, shown } from './overrides.js'
import type { PolicySet } from './policy-set.js'

/** The decision that a call would get now, and why. */
export interface Explanation extends DecisionRecord {
  readonly cost: number
  /** Whose numbers decide: the limiter's own, those of the call, an override of the key; or its block. */
  readonly rule: PolicyState['rule']
  /** The block of the key. An operator's has a record, so one without is of a penalty or of an older process. */
  readonly block: Readonly<{ by: 'an operator' | 'a penalty or an older process'; until: Date }> | undefined
  /** The override, block and hold of the key that have a record and are in force, as this process knows them. */
  readonly records: readonly KeyOverride[]
  /** Methods of the limiter, `override` with `exempt`, each of which lets the call pass. None where it passes, or in an outage. */
  readonly cures: readonly (typeof CURES)[number][]
  /** When it passes on the store's clock, unless more is charged. Undefined where it passes now or never, and in an outage. */
  readonly passesAt: Date | undefined
  /** All of this in one sentence of English, in which the words of operators are JSON. */
  readonly sentence: string
}

const KINDS = ['override', 'block', 'hold'] as const
const CURES = ['unblock', 'reset', 'removeOverride', 'override'] as const

/**
 * Explains what a call on a key under the list of policies `given` would get: by one peek, and by the records that this process
 * knows of the key (overrides, blocks and holds by operators). `lets` says of each act whether it alone lets the call pass.
 */
export async function explain(of: OverriddenLimiter, given: PolicySet, key: string, cost: number) {
  const [stored, { known }] = [storedKey(key), of.records]
  await known?.unread()
  const set = of.records.ruled(given, stored, false)
  const answer = await set.keyspace.decide('peek', stored, cost, 0)
  const decision = new Decision(set, answer, key, undefined).toJSON()
  const found = KINDS.flatMap((kind) => known?.get({ kind, limiter: of.name, stored }) ?? [])
  const records = found.map((record) => shown(record, of))
  const ban = records.find(({ kind }) => kind === 'block')
  // Of a limit of 0, and of a cost that never fits, a store may not have been asked: then the record alone says it.
  const until = dateOf(answer.blockedUntil) ?? (answer.at === Infinity ? ban?.until : undefined)
  const isDenied = decision.reason !== undefined && !answer.degraded
  const isHeld = decision.reason === 'held' || records.some(({ kind }) => kind === 'hold')
  const passesAt = isDenied ? dateOf(answer.at) : undefined
  const needs = decision.policies.map(({ used }) => (cost === 0 ? 0 : used + cost))
  const fits = ({ policies }: PolicySet) => needs.every((units, i) => units <= policies[i]!.capacity)
  const lets = {
    unblock: until && passesAt && passesAt <= until && !isHeld && fits(set), // or more denies behind the block
    reset: set.policies.every(({ capacity }) => cost <= capacity),
    removeOverride: set !== given && !until && !isHeld && fits(given),
    override: known && !ban,
  }
  const cures = CURES.filter((act) => isDenied && lets[act])
  const block = until && ({ by: ban ? 'an operator' : 'a penalty or an older process', until } as const)
  const rule = block ? 'block' : set.rule
  const { allowed, exempt, wouldDeny, policy, reason, degraded } = decision
  const outcome = wouldDeny ? 'passes in shadow mode alone' : allowed ? 'passes' : 'is denied'
  const parts = [
    `A call of cost ${cost} ${outcome} ${exempt ? 'uncounted' : `under '${policy}'`} (${reason ? `${reason}, ` : ''}rule ${rule})`,
    ...decision.policies.map(({ name, used, limit }) => `${used} of ${limit} used under '${name}'`),
    block && `blocked by ${block.by} until ${block.until.toISOString()}`,
    ...records.map(
      ({ kind, by = 'an operator', reason: why = 'no reason given', until }) =>
        `${kind} by ${JSON.stringify(by)} (${JSON.stringify(why)}) until ${until.toISOString()}`,
    ),
    isDenied && `${cures.join(' or ') || 'no single act'} is enough`,
    passesAt && `it passes at ${passesAt.toISOString()}`,
    degraded && `this is how this process sees it, as the store did not decide (${degraded})`,
  ]
  const sentence = `${parts.filter(Boolean).join('; ')}.`
  return { ...decision, cost, rule, block, records, cures, passesAt, sentence } as const
}

/** Returns the date of an instant in microseconds, rounded up; undefined for never (Infinity). */
function dateOf(us = Infinity): Date | undefined {
  return us < Infinity ? new Date(Math.ceil(us / 1000)) : undefined
}
