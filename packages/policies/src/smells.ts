import type { Policy } from '@sluice/core'
import { formatDuration } from '@sluice/core/internal'
import type { PolicyProblem, ReadLimiter, ReadPolicies } from './policy-file.js'
import { mostIn, untouchedSpan } from './span.js'

/** Policies in a file that are allowed and seldom meant, such as one that can never deny. */
export function smellsOf({ limiters, lineOf }: ReadPolicies): readonly PolicyProblem[] {
  return limiters.flatMap(({ name, policies }) => {
    return policies.flatMap((policy, i) => {
      const path = `limiters.${name}.policies[${i}]`
      return smellsAt(path, lineOf(path), smellsOfPolicy(policy, policies))
    })
  })
}

/** Problems of severity 'smell' at one place of a file, of their codes and messages. */
function smellsAt(path: string, line: number, found: Found): readonly PolicyProblem[] {
  return found.map(([code, message]) => ({ severity: 'smell', code, path, line, message }))
}

type Found = readonly (readonly [code: string, message: string])[]

/** The smells of one policy among those of its limiter, as pairs of code and message. */
function smellsOfPolicy(policy: Policy, policies: readonly Policy[]): Found {
  const { algorithm, capacity, limit, windowMs } = policy
  const twice = `${2 * limit} calls may pass within ${formatDuration(windowMs)} around the end of a window`
  const stricter = policies.find((other) => other !== policy && isVoidBeside(policy, other, policies))
  const all: readonly (readonly [isFound: boolean, code: string, message: string])[] = [
    [algorithm.name === 'fixed-window', 'FIXED_WINDOW_BOUNDARY', `${twice}; slidingWindow costs little more`],
    [capacity === 1 && limit > 1, 'BURST_ONE', 'a page that loads two things at once is denied one of them'],
    [stricter !== undefined, 'VOID_POLICY', `it never denies a call: '${stricter?.name}' denies it first`],
  ]
  return all.filter(([isFound]) => isFound).map(([, code, message]) => [code, message])
}

/**
 * Whether a policy never denies what the other admits, so that it could be left out. Of two that deny the same calls
 * the later one is void.
 */
function isVoidBeside(policy: Policy, other: Policy, policies: readonly Policy[]): boolean {
  const isMutual = isNoStricter(policy, other) && isNoStricter(other, policy)
  return isMutual ? policies.indexOf(policy) > policies.indexOf(other) : isNoStricter(policy, other)
}

/**
 * Whether `policy` admits all calls that `other` admits: because `other` never admits more than its capacity in the
 * span that counts, or because both have one shape and `other` the smaller numbers. Where neither shows it, the answer
 * is false.
 */
function isNoStricter(policy: Policy, other: Policy): boolean {
  if (mostIn(other, untouchedSpan(policy)) <= policy.capacity) return true
  return other.shape === policy.shape && other.limit <= policy.limit && other.capacity <= policy.capacity
}

/** The losses of callers when the file replaces another: limiters and shapes that are gone, and limits that have fallen. */
export function changesAgainst(file: ReadPolicies, current: ReadPolicies): readonly PolicyProblem[] {
  return current.limiters.flatMap((before) => {
    const path = `limiters.${before.name}`
    const after = file.limiters.find(({ name }) => name === before.name)
    const gone = ['LOST_LIMITER', `'${before.name}' is gone: its calls are not limited any more`] as const
    // A limiter with an error is not among the limiters, and not gone.
    const found = after ? changesOf(before, after) : file.errors.length > 0 ? [] : [gone]
    return smellsAt(path, file.lineOf(path), found)
  })
}

/** The losses of callers when one limiter's policies are replaced: its state, where shapes differ, or else lower limits. */
function changesOf(before: ReadLimiter, after: ReadLimiter): Found {
  const [was, is] = [before, after].map(({ policies }) => policies.map(({ shape }) => shape).join(', '))
  const lost = `the shapes ${was} become ${is}: what was consumed is forgotten, callers begin anew`
  if (was !== is) return [['LOST_SHAPE', lost]]
  return before.policies.flatMap((policy, i): Found => {
    const next = after.policies[i]!
    const name = (['limit', 'capacity'] as const).find((each) => next[each] < policy[each])
    if (name === undefined) return []
    return [['FALLEN_LIMIT', `the ${name} of '${next.name}' falls from ${policy[name]} to ${next[name]}`]]
  })
}
