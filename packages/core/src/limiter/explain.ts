import { storedKey } from '../values/key.js'
import { Decision, type DecisionRecord, type PolicyState } from './decision.js'
import { type KeyOverride, type OverriddenLimiter, recordShown } from './overrides.js'
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
 * Explains what a call on a key under the list of policies `given` would get: by one peek (a call that only reads), and by the records
 * of the key that this process knows: overrides, blocks and holds that operators have set. `cures` are the acts of which each alone
 * would let a denied call pass now, such as `unblock`; `rule` says what decides the call.
 */
export async function explain(of: OverriddenLimiter, given: PolicySet, key: string, cost: number) {
  const stored = storedKey(key)
  const { known } = of.records
  await known?.untilFirstRead()
  const set = of.records.withOverride(given, stored, false)
  const answer = await set.keyspace.decide('peek', stored, cost, 0)
  const decision = new Decision(set, answer, key, undefined).toJSON()
  const found = KINDS.flatMap((kind) => known?.get({ kind, limiter: of.name, stored }) ?? [])
  const records = found.map((record) => recordShown(record, of))

  const blockRecord = records.find(({ kind }) => kind === 'block')
  // Of a limit of 0, and of a cost that never fits, a store may not have been asked: then the record alone says it.
  const blockedUntil =
    dateOf(answer.blockedUntil) ?? (answer.at === Infinity ? blockRecord?.until : undefined)
  const blockedBy = blockRecord ? 'an operator' : 'a penalty or an older process'
  const block = blockedUntil && ({ by: blockedBy, until: blockedUntil } as const)
  const isDenied = decision.reason !== undefined && !answer.degraded
  const passesAt = isDenied ? dateOf(answer.at) : undefined

  const isHeld = decision.reason === 'held' || records.some(({ kind }) => kind === 'hold')
  // An exemption, which needs a store with records, wins over all but a block of an operator.
  const canBeExempted = known !== undefined && !blockRecord
  const denial = { decision, cost, set, given, blockedUntil, passesAt, isHeld, canBeExempted }
  const cures = isDenied ? curesOf(denial) : []
  const explained = {
    ...decision,
    cost,
    rule: block ? 'block' : set.rule,
    block,
    records,
    cures,
    passesAt,
  } as const
  return { ...explained, sentence: sentenceOf(explained, isDenied) }
}

/** What is known of a call that is denied: under `set`, the policies that an override may have made of those `given`. */
interface ExplainedDenial {
  readonly decision: DecisionRecord
  readonly cost: number
  readonly set: PolicySet
  readonly given: PolicySet
  readonly blockedUntil: Date | undefined
  readonly passesAt: Date | undefined
  readonly isHeld: boolean
  readonly canBeExempted: boolean
}

/** Returns the acts of which each alone lets a denied call pass. */
function curesOf(denial: ExplainedDenial): Explanation['cures'] {
  const { decision, cost, set, given, blockedUntil, passesAt, isHeld, canBeExempted } = denial
  const usedWithCall = decision.policies.map(({ used }) => (cost === 0 ? 0 : used + cost))
  const fitsUnder = ({ policies }: PolicySet): boolean =>
    usedWithCall.every((units, i) => units <= policies[i]!.capacity)
  const passesAtEndOfBlock = blockedUntil && passesAt && passesAt <= blockedUntil
  const isOverridden = set !== given
  const isEnough = {
    unblock: passesAtEndOfBlock && !isHeld && fitsUnder(set),
    reset: set.policies.every(({ capacity }) => cost <= capacity),
    removeOverride: isOverridden && !blockedUntil && !isHeld && fitsUnder(given),
    override: canBeExempted,
  }
  return CURES.filter((act) => isEnough[act])
}

/**
 * Puts an explanation into one sentence of English: the outcome of the call, what is used under each policy, a block, the records of
 * operators about the key, which act would let the call pass, and when it passes by itself.
 */
function sentenceOf(explained: Omit<Explanation, 'sentence'>, isDenied: boolean): string {
  const { cost, rule, block, records, cures, passesAt } = explained
  const { allowed, exempt, wouldDeny, policy, policies, reason, degraded } = explained
  const outcome = wouldDeny ? 'passes in shadow mode alone' : allowed ? 'passes' : 'is denied'
  const counting = exempt ? 'uncounted' : `under '${policy}'`
  const parts = [
    `A call of cost ${cost} ${outcome} ${counting} (${reason ? `${reason}, ` : ''}rule ${rule})`,
    ...policies.map(({ name, used, limit }) => `${used} of ${limit} used under '${name}'`),
    block && `blocked by ${block.by} until ${block.until.toISOString()}`,
    ...records.map(
      ({ kind, by = 'an operator', reason: why = 'no reason given', until }) =>
        `${kind} by ${JSON.stringify(by)} (${JSON.stringify(why)}) until ${until.toISOString()}`,
    ),
    isDenied && `${cures.join(' or ') || 'no single act'} is enough`,
    passesAt && `it passes at ${passesAt.toISOString()}`,
    degraded && `this is how this process sees it, as the store did not decide (${degraded})`,
  ]
  return `${parts.filter(Boolean).join('; ')}.`
}

/** Returns the date of an instant in microseconds, rounded up; undefined for never (Infinity). */
function dateOf(us = Infinity): Date | undefined {
  return us < Infinity ? new Date(Math.ceil(us / 1000)) : undefined
}
