import type { Policy } from '@sluice/core'
import { formatDuration } from '@sluice/core/internal'
import { type PolicyPath, shownPath } from './json.js'
import type { PolicyProblem, ReadLimiter, ReadPolicies } from './policy-file.js'

/**
 * Finds policies in a file, those of plans too, that are allowed but seldom meant, such as a policy that can never deny. Each is
 * reported with its place and line.
 */
export function smellsOf({ limiters, lineOf }: ReadPolicies): readonly PolicyProblem[] {
  return limiters.flatMap(({ name, policies, plans = new Map<string, readonly Policy[]>() }) => {
    const at = ['limiters', name]
    const ofPlans = [...plans].map(([plan, list]) => [[...at, 'plans', plan], list] as const)
    return [[[...at, 'policies'], policies] as const, ...ofPlans].flatMap(([place, list]) =>
      list.flatMap((policy, i) => {
        const path = [...place, i]
        return smellsAt(path, lineOf(path), smellsOfPolicy(policy, list))
      }),
    )
  })
}

/** The problems of severity 'smell' at one place of a file: one for each pair of code and message in `found`. */
function smellsAt(path: PolicyPath, line: number, found: Found): readonly PolicyProblem[] {
  return found.map(([code, message]) => ({ severity: 'smell', code, path: shownPath(path), line, message }))
}

type Found = readonly (readonly [code: string, message: string])[]

/**
 * The smells of one policy beside the others of its limiter, as pairs of code and message: windows whose boundary
 * lets more than the capacity pass at once, other than those of a calendar; a capacity of 1, which denies one of two calls at once; a policy that never denies, because
 * another one always denies first.
 */
function smellsOfPolicy(policy: Policy, policies: readonly Policy[]): Found {
  const { algorithm, calendar, capacity, limit, windowMs } = policy
  const { most } = algorithm.bounds
  const twice = `${most(policy, policy.window)} calls may pass within ${formatDuration(windowMs)} around the end of a window`
  const stricter = policies.find((other) => other !== policy && isVoidBeside(policy, other, policies))
  const all: readonly (readonly [isFound: boolean, code: string, message: string])[] = [
    [!calendar && most(policy, 2) > capacity, 'WINDOW_BOUNDARY', `${twice}; slidingWindow costs little more`],
    [capacity === 1 && limit > 1, 'BURST_ONE', 'a page that loads two things at once is denied one of them'],
    [stricter !== undefined, 'VOID_POLICY', `it never denies a call: '${stricter?.name}' denies it first`],
  ]
  return all.filter(([isFound]) => isFound).map(([, code, message]) => [code, message])
}

/**
 * Whether a policy never denies a call that `other` admits, so that it could be left out of the list. If the two deny the
 * same calls, only the later one in the list counts as void.
 */
function isVoidBeside(policy: Policy, other: Policy, policies: readonly Policy[]): boolean {
  const isMutual = isNoStricter(policy, other) && isNoStricter(other, policy)
  return isMutual ? policies.indexOf(policy) > policies.indexOf(other) : isNoStricter(policy, other)
}

/**
 * Whether `policy` surely admits all calls that `other` admits; false also where that is not known. It is sure if `other`
 * never admits more than the capacity of `policy` within the span that decides about it, its reach, or if the two
 * have one shape (algorithm and window), the same boundaries of a calendar if any, and `other` the smaller numbers.
 */
function isNoStricter(policy: Policy, other: Policy): boolean {
  const { reach } = policy.algorithm.bounds
  if (other.algorithm.bounds.most(other, reach(policy)) <= policy.capacity) return true
  const [own, others] = [policy, other].map(({ calendar }) => calendar)
  const haveOneCalendar = own?.timeZone === others?.timeZone && own?.anchor === others?.anchor
  const areAlike = other.shape === policy.shape && haveOneCalendar
  return areAlike && other.limit <= policy.limit && other.capacity <= policy.capacity
}

/**
 * The losses of callers when `file` replaces the file `current`: limiters that are gone, state that becomes invalid
 * because policies change their shape, and limits that fall. If the new file has errors, a missing limiter may be one of
 * them, and is not reported.
 */
export function changesAgainst(
  file: ReadPolicies,
  current: ReadPolicies,
): readonly (PolicyProblem & { readonly limiter: string })[] {
  return current.limiters.flatMap((before) => {
    const path = ['limiters', before.name]
    const after = file.limiters.find(({ name }) => name === before.name)
    const gone = ['LOST_LIMITER', `'${before.name}' is gone: its calls are not limited any more`] as const
    // A limiter with an error is not among the limiters, and not gone.
    const found = after ? changesOf(before, after) : file.errors.length > 0 ? [] : [gone]
    return smellsAt(path, file.lineOf(path), found).map((problem) => ({ ...problem, limiter: before.name }))
  })
}

/**
 * The losses of callers when one limiter's policies `before` are replaced by those of `after`, those of each plan too, as pairs
 * of code and message. If a policy's shape changes (algorithm, window), its stored state is not valid any more, and callers begin
 * anew; otherwise limits and capacities that fall are listed.
 */
function changesOf(before: ReadLimiter, after: ReadLimiter): Found {
  const names = new Set([...(before.plans ?? new Map()).keys(), ...(after.plans ?? new Map()).keys()])
  const plans = [...names].flatMap((name) => {
    const [was, is] = [before, after].map((each) => each.plans?.get(name) ?? each.policies)
    return changesOfList(was!, is!, ` of the plan '${name}'`)
  })
  // Without it an application counts by its own `key`, which need not be the address.
  const [wasBy, by] = [before, after].map((each) => (each.by === undefined ? 'none' : `'${each.by}'`))
  const counted = `by was ${wasBy} and becomes ${by}: what was consumed is forgotten, callers begin anew`
  const lostBy: Found = by === wasBy ? [] : [['LOST_BY', counted]]
  return [...changesOfList(before.policies, after.policies, ''), ...plans, ...lostBy]
}

/** The losses of callers whose list of policies is replaced by another: its state, or else what its numbers fall by. */
function changesOfList(before: readonly Policy[], after: readonly Policy[], of: string): Found {
  const [was, is] = [before, after].map((policies) => policies.map(({ shape }) => shape).join(', '))
  const lost = `the shapes ${was}${of} become ${is}: what was consumed is forgotten, callers begin anew`
  if (was !== is) return [['LOST_SHAPE', lost]]
  return before.flatMap((policy, i): Found => {
    const next = after[i]!
    const name = (['limit', 'capacity'] as const).find((each) => next[each] < policy[each])
    if (name === undefined) return []
    return [
      ['FALLEN_LIMIT', `the ${name} of '${next.name}'${of} falls from ${policy[name]} to ${next[name]}`],
    ]
  })
}
