import { LEDGER, type Rule } from './member.js'
import { movedBy } from './plan.js'
import type { History, Listed, Record } from './simulation.js'
import { isClockSetBack, isUnder, lasting, losesData } from './under-faults.js'

/** An override is in force after so many microseconds in every process, and a while for the call itself. */
const IN_FORCE_US = 2_100_000

/** What is wrong with the numbers by which a call on the ledger was decided; undefined if they were in force. */
export function wrongRule(record: Record, rules: readonly Rule[], history: History): string | undefined {
  const { told, member, startedAt, settledAt = Infinity } = record
  const { limit, reason, degraded } = told!
  const { faults } = history
  const seenFrom = sightOf(record, history)
  const isLost = ({ from }: Rule): boolean => isUnder(history, from, settledAt, losesData)
  const isSure = (each: Rule): boolean =>
    each.until <= (each.member === member ? startedAt : seenFrom) && !isLost(each)
  // A process goes on by the clock that it knew before.
  const isMoved = faults.some((each) => movedBy(each) !== 0 && each.at > seenFrom && each.at <= settledAt)
  const believed = isMoved ? settledAt - seenFrom : 0
  const mayHaveEnded = ({ from, until, lasts }: Rule): boolean =>
    clocks(from, settledAt, history)[1] + believed >=
    clocks(from, Math.min(until, settledAt), history)[0] + lasts
  const hasEnded = ({ from, until, lasts }: Rule): boolean =>
    until <= seenFrom && clocks(seenFrom, settledAt, history)[0] >= clocks(from, until, history)[1] + lasts
  const current = (kind: Rule['kind']): Rule[] => {
    const all = rules.filter((each) => each.kind === kind && each.from <= settledAt)
    return all.filter((each) => !all.some((other) => other.from >= each.until && isSure(other)))
  }
  const overrides = current('override')
  const possible = new Set(overrides.flatMap((each) => (hasEnded(each) ? [] : (each.limit ?? LEDGER))))
  const isFixed = overrides.some((each) => isSure(each) && each.limit !== undefined)
  if (!isFixed || overrides.some((each) => each.limit === undefined || mayHaveEnded(each)))
    possible.add(LEDGER)
  const blocks = (degraded ? rules.filter(({ kind }) => kind === 'block') : current('block')).filter(
    (each) => each.from <= settledAt,
  )
  // A block with a record beats an exemption, and so does one that others have ended and that this process still knows.
  if (possible.has(Infinity) && blocks.some((each) => each.limit !== undefined)) possible.add(LEDGER)
  if (reason === 'blocked') {
    // Where its clock was set back time stands still for a key.
    const isStill = isClockSetBack(history)
    const mayBe = blocks.some((each) => each.limit !== undefined && (isStill || !hasEnded(each)))
    return mayBe ? undefined : 'is blocked by nothing'
  }
  // The state denies at once, and where the key is exempt the record does.
  const isKnown = (each: Rule): boolean =>
    possible.has(Infinity) ? isSure(each) : each.until <= startedAt && !isLost(each)
  const mustBe =
    blocks.length > 0 &&
    !degraded &&
    !told!.isCached && // as it was denied for another reason before
    blocks.every((each) => each.limit !== undefined && isKnown(each) && !mayHaveEnded(each))
  if (mustBe) return 'is not blocked'
  if (!possible.has(limit)) return `goes by ${limit} in place of ${[...possible].join(' or ')}`
  return limit >= LEDGER && reason === 'limit' ? `is denied under ${limit}` : undefined
}

/** The limit that a key of the ledger has by the records of the store. */
export function listedLimit(key: string, listed: Listed): number {
  const found = listed.find((each) => each.kind === 'override' && each.key === key)
  if (!found) return LEDGER
  return found.exempt ? Infinity : found.factor ? LEDGER * found.factor : Object.values(found.limits!)[0]!
}

/** The instant from which on a process may not have heard of what others did. In trouble it goes by what it knew before. */
function sightOf({ startedAt, member }: Record, { faults }: History): number {
  let from = startedAt - IN_FORCE_US
  for (const fault of faults.toSorted((a, b) => b.at + lasting(b) - a.at - lasting(a))) {
    if (fault.fault.startsWith('provider') || fault.at > startedAt || fault.at + lasting(fault) < from)
      continue
    from = Math.min(from, fault.at - IN_FORCE_US)
  }
  // A process that began in trouble knows nothing.
  return from < startedAt - IN_FORCE_US && member.process.startedAt > from ? -Infinity : from
}

/** The least and the most that the server's clock was between two instants, without its beginning. */
function clocks(from: number, to: number, { faults }: History): readonly [least: number, most: number] {
  const moves = faults.filter((fault) => movedBy(fault) !== 0)
  const skew = (isMoved: (at: number) => boolean): number =>
    moves.reduce((sum, move) => sum + (isMoved(move.at) ? movedBy(move) : 0), 0)
  const seen = [from + skew((at) => at <= from), to + skew((at) => at <= to)]
  for (const { at } of moves) {
    if (at > from && at <= to) seen.push(at + skew((other) => other < at), at + skew((other) => other <= at))
  }
  return [Math.min(...seen), Math.max(...seen)]
}
