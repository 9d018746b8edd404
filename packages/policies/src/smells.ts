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
    const path = ['limiters', name]
    const ofPlans = [...plans].map(([plan, list]) => [[...path, 'plans', plan], list] as const)
    return [[[...path, 'policies'], policies] as const, ...ofPlans].flatMap(([listPath, list]) =>
      list.flatMap((policy, i) => {
        const policyPath = [...listPath, i]
        return smellsAt(policyPath, lineOf(policyPath), smellsOfPolicy(policy, list))
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
 * The smells of one policy beside the others of its limiter, as pairs of code and message: windows, other than those of a calendar,
 * at whose boundary more than the capacity passes at once; a capacity of 1, which denies one of two calls at once; a policy that
 * never denies, because another one always denies first.
 */
function smellsOfPolicy(policy: Policy, policies: readonly Policy[]): Found {
  const { algorithm, calendar, capacity, limit, windowMs } = policy
  const { most } = algorithm.bounds
  const found: (readonly [code: string, message: string])[] = []
  // The most in two microseconds: more than the capacity only if a window ends between them.
  if (!calendar && most(policy, 2) > capacity) {
    const passing = `${most(policy, policy.window)} calls may pass within ${formatDuration(windowMs)}`
    const message = `${passing} around the end of a window; slidingWindow costs little more`
    found.push(['WINDOW_BOUNDARY', message])
  }
  if (capacity === 1 && limit > 1) {
    found.push(['BURST_ONE', 'a page that loads two things at once is denied one of them'])
  }
  const stricter = policies.find((other) => other !== policy && isVoidBeside(policy, other, policies))
  if (stricter) found.push(['VOID_POLICY', `it never denies a call: '${stricter.name}' denies it first`])
  return found
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
 * Whether `policy` surely admits all calls that `other` admits; false also where that is not known. It is sure if `other` never
 * admits more than the capacity of `policy` in the span that decides about the latter, its reach; or if both have one shape
 * (algorithm and window) and the same calendar, if any, and the numbers of `other` are not larger.
 */
function isNoStricter(policy: Policy, other: Policy): boolean {
  const { reach } = policy.algorithm.bounds
  if (other.algorithm.bounds.most(other, reach(policy)) <= policy.capacity) return true
  const [calendar, otherCalendar] = [policy.calendar, other.calendar]
  const haveOneCalendar =
    calendar?.timeZone === otherCalendar?.timeZone && calendar?.anchor === otherCalendar?.anchor
  const areAlike = other.shape === policy.shape && haveOneCalendar
  return areAlike && other.limit <= policy.limit && other.capacity <= policy.capacity
}

/**
 * The losses of callers when `file` replaces the file `current`: limiters that are gone, state that becomes invalid because
 * policies change their shape, and limits that fall. If the new file has errors, a limiter that is missing may be one with an error,
 * and is not reported.
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
  const planNames = new Set([...(before.plans ?? new Map()).keys(), ...(after.plans ?? new Map()).keys()])
  const policiesIn = ({ plans, policies }: ReadLimiter, plan: string) => plans?.get(plan) ?? policies
  const ofPlans = [...planNames].flatMap((plan) =>
    changesOfList(policiesIn(before, plan), policiesIn(after, plan), ` of the plan '${plan}'`),
  )
  // None is not 'ip': without `by` an application counts by its own `key`, which need not be the address.
  const byIn = ({ by }: ReadLimiter): string => (by === undefined ? 'none' : `'${by}'`)
  const message = `by was ${byIn(before)} and becomes ${byIn(after)}: what was consumed is forgotten, callers begin anew`
  const ofBy: Found = byIn(before) === byIn(after) ? [] : [['LOST_BY', message]]
  return [...changesOfList(before.policies, after.policies, ''), ...ofPlans, ...ofBy]
}

/**
 * The losses of callers whose list of policies is replaced by another: their state, if the shapes differ; otherwise each limit or
 * capacity that falls. `of` is appended to what messages name.
 */
function changesOfList(before: readonly Policy[], after: readonly Policy[], of: string): Found {
  const shapesOf = (policies: readonly Policy[]): string => policies.map(({ shape }) => shape).join(', ')
  const [shapesBefore, shapesAfter] = [shapesOf(before), shapesOf(after)]
  if (shapesBefore !== shapesAfter) {
    const change = `the shapes ${shapesBefore}${of} become ${shapesAfter}`
    return [['LOST_SHAPE', `${change}: what was consumed is forgotten, callers begin anew`]]
  }
  return before.flatMap((policy, i): Found => {
    const next = after[i]!
    const fallen = (['limit', 'capacity'] as const).find((name) => next[name] < policy[name])
    if (fallen === undefined) return []
    const change = `the ${fallen} of '${next.name}'${of} falls from ${policy[fallen]} to ${next[fallen]}`
    return [['FALLEN_LIMIT', change]]
  })
}
