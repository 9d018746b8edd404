import type { Policy } from '../algorithms/contract/policy.js'
import { type Answer, usedOf } from '../stores/store.js'
import type { Duration } from '../values/duration.js'
import { durationsFrom, parseDuration } from '../values/duration.js'
import { codeOf, expectedButGot, InputError, PolicyError, StoreError } from '../values/errors.js'
import { storedKey } from '../values/key.js'
import * as option from '../values/options.js'
import type { KeyRecord, RecordContent, RecordKind } from './key-record.js'
import { type LimiterRecords, MOST_RECORDS } from './known-records.js'
import { overriddenSet, overriddenPolicies } from './overridden-set.js'
import { checkedPolicies, type PolicySet, shapesOf } from './policy-set.js'
import { SuspendedKeyspace } from './suspended-keyspace.js'

/** The reason of an act on a key and who acts, as the list of records shows them: 1 to 200 characters each. */
export interface ActOptions {
  readonly reason?: string
  readonly by?: string
}

/** Options of `limiter.override`. One of `limit`, `factor`, `policies` and `exempt` is given. */
export interface OverrideOptions extends Required<ActOptions> {
  /**
   * The limit in place of that of the policy; of several policies, by their names. A capacity or burst that the policy was not given
   * follows it. Acts under lists of the limiter's own shapes.
   */
  readonly limit?: number | Readonly<Record<string, number>>
  /** Multiplies limit, capacity and burst of the call's list, rounded down, at least 1. Acts under every list. */
  readonly factor?: number
  /** A list of the limiter's own shapes, whose limits and capacities come into force. */
  readonly policies?: readonly Policy[]
  /** Calls on the key pass without being counted. */
  readonly exempt?: true
  /** The end: a Date, which is an instant of the store's clock, or a duration from now. */
  readonly until: Date | Duration
  /**
   * Whether it may allow less than is in use now, so that the key is denied at once, or be made where the store does not say what is.
   * @default false
   */
  readonly force?: boolean
}

/** A record of one key: what is in force, until when, by whom and why. */
export interface KeyOverride {
  readonly kind: RecordKind
  readonly key: string
  readonly limiter: string
  readonly reason: string | undefined
  readonly by: string | undefined
  readonly madeAt: Date
  readonly until: Date
  /** Of an override: when it last decided a call of any process, to the minute; undefined if it never did. */
  readonly lastAppliedAt?: Date | undefined
  /** Of an override: the limit of each policy of the limiter by its name. */
  readonly limits?: Readonly<Record<string, number>>
  readonly factor?: number
  readonly exempt?: true
  /** Of an override: the lists under which it acts. Under none, the limiter's own have other shapes by now, or cannot take its numbers. */
  readonly actsUnder?: 'every list' | 'lists of these shapes' | 'none'
  /** Of an override: for so many milliseconds after it was made leases that were taken before may serve; 0 without leases. */
  readonly leaseMs?: number
  /** What `override` returns: why the key is blocked meanwhile, by a record or otherwise; undefined if it is not. */
  readonly blocked?: string
}

const words = option.text('a text of 1 to 200 characters', /^[^]{1,200}$/)
/** Options of `block` and `hold` beside those of every call on a key. */
export const ACT = { reason: words, by: words } satisfies option.DeclarationOf<ActOptions>
const OVERRIDE = {
  reason: option.required(words),
  by: option.required(words),
  limit: option.unchecked<OverrideOptions['limit']>(),
  factor: option.custom<number>('a number above 0, at most 1,000,000', (value) =>
    typeof value === 'number' && value > 0 && value <= 1e6 ? value : option.REFUSED,
  ),
  policies: option.unchecked<OverrideOptions['policies']>(),
  exempt: option.oneOf([true]),
  until: option.required(option.unchecked<Date | Duration>()),
  force: option.flag(false),
} satisfies option.DeclarationOf<OverrideOptions>
const ABOUT = { what: 'limiter.override', error: InputError }

/** Longest time that an override may be in force: a Date too is at most so far ahead. */
const LONGEST_MS = 365 * 86_400_000

/** One limiter as its overrides see it. */
export interface OverriddenLimiter {
  readonly name: string
  readonly records: LimiterRecords
  readonly leaseMs: number
  /** The set of calls that bring no list. */
  own(): PolicySet
}

/**
 * Writes an override: gives one key other limits than the limiter's own, or none, until an instant. `force` lets it deny the key at
 * once for what it has used already; otherwise that is checked, under a factor for each plan (`refuseToLower`). Refusals that a penalty
 * has counted so far are forgotten. Returns the override as users see it, with `blocked` if the key is blocked nevertheless.
 * @throws {InputError} INVALID_OPTION, INVALID_OVERRIDE, OVERRIDE_LOWERS, TOO_MANY_OVERRIDES; {PolicyError}; {StoreError}.
 */
export async function override(
  of: OverriddenLimiter,
  key: string,
  options: OverrideOptions,
): Promise<KeyOverride> {
  const stored = storedKey(key)
  const known = recordsOf(of)
  const { reason, by, force, ...settings } = option.readOptions(OVERRIDE, options, ABOUT)
  await known.untilFirstRead()
  const set = of.own()
  const content: RecordContent = { key, reason, by, ...contentOf(settings, set) }
  const end = endOf(settings.until, known.now())
  const answer = await refuseToLower(of, set, stored, content, force)
  if (content.factor !== undefined && !force) {
    // One after the other: a store would not answer hundreds of them at once within their deadline.
    for (const plan of set.sets.plans) await refuseToLower(of, plan, stored, content, force)
  }
  const subject = { kind: 'override', limiter: of.name, stored } as const
  const madeAt = await known.write(subject, content, end)
  if (madeAt === undefined) {
    const why = `limiter '${of.name}' has ${MOST_RECORDS} overrides already: give callers who differ for good a plan, a list of policies of their own`
    throw new InputError('TOO_MANY_OVERRIDES', why)
  }
  // Refusals that the former numbers made are no offence under the new ones. The override is in force by now, also if this fails.
  await set.sets.correct({ kind: 'block', key: stored, duration: 0, isPenalty: true }).catch(() => {})
  const block = known.get({ ...subject, kind: 'block' })
  const { until = madeAt + end.life! } = end
  const who = block ? `by ${block.content.by ?? 'an operator'}` : 'by a penalty or an older process'
  const isBlocked = answer.reason === 'blocked'
  const record = { ...subject, id: '', version: madeAt, until, appliedAt: 0, content }
  return { ...recordShown(record, of), ...(isBlocked && { blocked: `${who}: unblock ends it` }) }
}

/** Reads the records of a limiter's keys (overrides, blocks and holds) from its store, as users see them, the latest first. */
export async function overrides(of: OverriddenLimiter): Promise<readonly KeyOverride[]> {
  const records = await recordsOf(of).list(of.name)
  return records
    .map((record) => recordShown(record, of))
    .toSorted((a, b) => Number(b.madeAt) - Number(a.madeAt))
}

/**
 * Returns the records of a limiter's store: what operators have set for single keys, overrides, blocks and holds.
 * @throws {PolicyError} INVALID_OPTION if the store keeps no records.
 */
export function recordsOf({
  name,
  records: { known },
}: OverriddenLimiter): NonNullable<LimiterRecords['known']> {
  if (known) return known
  const why = `the store of limiter '${name}' keeps no records, which overrides and the reason of a block need: take one that has \`records\``
  throw new PolicyError('INVALID_OPTION', why)
}

type NumbersGiven = Pick<option.Settings<typeof OVERRIDE>, 'limit' | 'factor' | 'policies' | 'exempt'>

/**
 * Returns what a record keeps of an override, which gives one key other numbers: the `factor` by which all limits are multiplied; or
 * the numbers of `limit` or `policies`, as a list of `limits` in the order of the set's policies, valid only for policies of the same
 * `shapes` (algorithms and windows); or that the key is `exempt` from limits.
 * @throws {InputError} INVALID_OVERRIDE; {PolicyError} for numbers that the algorithms cannot count exactly.
 */
function contentOf({ limit, factor, policies, exempt }: NumbersGiven, set: PolicySet) {
  const { given, shapes } = set
  const optionsGiven = [limit, factor, policies, exempt].filter((each) => each !== undefined)
  if (optionsGiven.length !== 1) throw invalid('takes one of limit, factor, policies and exempt')
  if (exempt) return { exempt }
  if (factor !== undefined) return checked(set, { factor })
  if (policies) {
    const list = checkedPolicies(policies)
    if (shapesOf(list) !== shapes) {
      throw invalid(
        `policies must have the algorithms and windows of the limiter, in order: ${shapes.replaceAll('\n', ', ')}`,
      )
    }
    return checked(set, { shapes, limits: list.map((each) => [each.limit, each.capacity] as const) })
  }
  const names = given.map(({ name }) => name)
  return checked(set, { shapes, limits: limitsInOrder(limit, names) })
}

/**
 * Returns the limits of an override in the order of the policies' `names`, null where the policy's own stays. `limit` is one number, if
 * there is one policy, or an object of limits by name.
 * @throws {InputError} INVALID_OVERRIDE.
 */
function limitsInOrder(limit: unknown, names: readonly string[]): readonly (number | null)[] {
  const isOnePolicy = names.length === 1
  if (typeof limit === 'number' && isOnePolicy) return [limit]
  const byName = new Map<string, unknown>(Object.entries(Object(limit) as object))
  const unknownName = [...byName.keys()].find((name) => !names.includes(name))
  const areNumbers = [...byName.values()].every((each) => typeof each === 'number')
  if (byName.size === 0 || unknownName !== undefined || !areNumbers) {
    const expected = isOnePolicy ? 'a number' : `{ '${names.join("': limit, '")}': limit }`
    const why = unknownName === undefined ? '' : `: there is no policy '${unknownName}'`
    throw invalid(`limit must be ${expected}${why}`)
  }
  return names.map((name) => (byName.get(name) ?? null) as number | null)
}

/** Returns the content of a record; throws a PolicyError if the algorithms cannot count its numbers exactly. */
function checked<C extends Omit<RecordContent, 'key'>>(set: PolicySet, content: C): C {
  overriddenPolicies(set, content)
  return content
}

function invalid(why: string): InputError {
  return new InputError('INVALID_OVERRIDE', `limiter.override ${why}`)
}

/**
 * Returns the end of an override: a Date as the instant `until`, in microseconds on the store's clock, of which `now` is the present; a
 * duration as the `life` from then on, in microseconds.
 * @throws {InputError} INVALID_DURATION for an end that is past or more than 365 days away.
 */
function endOf(until: Date | Duration, now: number): { readonly until?: number; readonly life?: number } {
  if (!(until instanceof Date)) return { life: parseDuration(until, 'until') * 1000 }
  const us = Number(until) * 1000
  if (us > now && us <= now + LONGEST_MS * 1000) return { until: us }
  const bound = `until must be a Date that is ahead, by at most 365 days, or ${durationsFrom(1, LONGEST_MS)}`
  throw expectedButGot(
    InputError,
    'INVALID_DURATION',
    bound,
    Number.isNaN(us) ? 'an invalid Date' : until.toISOString(),
  )
}

/**
 * Checks that an override (`content`) of the policies of `set` does not deny the key at once, because the key has used more already
 * than a new capacity. That may be for a policy that stays as it is, and for a factor that does not lower the numbers in force.
 * Returns how the key stands, by a peek. `force` leaves the check out. `stored` is the key as stores have it.
 * @throws {InputError} OVERRIDE_LOWERS; {StoreError} if the store does not say what is in use.
 */
async function refuseToLower(
  of: OverriddenLimiter,
  set: PolicySet,
  stored: string,
  content: RecordContent,
  force: boolean,
): Promise<Answer> {
  const { keyspace } = set
  const state = keyspace instanceof SuspendedKeyspace ? keyspace.state : keyspace
  const answer = await state.decide('peek', stored, 0, 0)
  if (content.exempt || force) return answer
  const advice = 'pass force: true if that is meant'
  if (answer.degraded) {
    const why = `the store does not say what '${content.key}' has used, so an override may lower its limit: ${advice}`
    throw new StoreError(codeOf(answer.degraded.why), why, { sent: false })
  }
  const inForce = of.records.withOverride(set, stored, false).given
  for (const [i, policy] of overriddenSet(set, content).given.entries()) {
    const { name, capacity } = policy
    const used = usedOf(answer, state.policies[i]!, i)
    const isUnchanged = policy === set.given[i]
    const isRaised = content.factor !== undefined && capacity >= (inForce[i] ?? set.given[i]!).capacity
    if (used <= capacity || isRaised || isUnchanged) continue
    const what = `'${content.key}' has used ${used} of '${name}', and would be denied until no more than ${capacity} count`
    throw new InputError('OVERRIDE_LOWERS', `${what}: ${advice}`)
  }
  return answer
}

/**
 * Returns a record (an override, a block or a hold of one key) as users see it: instants as Dates, and an override with its numbers.
 * `limits` are the limits that an override by numbers gives the limiter's own policies, by name. `actsUnder` says under which lists of
 * policies it acts: none, if the limiter's policies have other algorithms or windows by now.
 */
export function recordShown(record: KeyRecord, of: OverriddenLimiter): KeyOverride {
  const { kind, limiter, version, until, appliedAt, content } = record
  const { key, reason, by, factor, exempt, limits } = content
  const date = (us: number): Date => new Date(us / 1000)
  const entry = { kind, key, limiter, reason, by, madeAt: date(version), until: date(until) }
  if (kind !== 'override') return entry
  const policiesInForce = limits && ownOverridden(of, content)
  return {
    ...entry,
    lastAppliedAt: appliedAt > 0 ? date(appliedAt) : undefined,
    ...(policiesInForce && {
      limits: Object.fromEntries(policiesInForce.map(({ name, limit }) => [name, limit])),
    }),
    ...(factor !== undefined && { factor }),
    ...(exempt && { exempt }),
    actsUnder: !limits ? 'every list' : policiesInForce ? 'lists of these shapes' : 'none',
    leaseMs: of.leaseMs,
  }
}

/**
 * Returns the limiter's own policies with the numbers of an override; undefined if the policies have other shapes (algorithms and
 * windows) by now than the override was made for, or if the numbers are no longer valid for them.
 */
function ownOverridden(of: OverriddenLimiter, content: RecordContent): readonly Policy[] | undefined {
  try {
    const set = of.own()
    return content.shapes === set.shapes ? overriddenPolicies(set, content) : undefined
  } catch {
    return undefined
  }
}
