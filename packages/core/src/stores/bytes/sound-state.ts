import type { Policy } from '../../algorithms/contract/policy.js'
import { State } from '../../algorithms/contract/state.js'
import type { KeptState } from './state-bytes.js'

/**
 * Whether a call can have written this state under policies of these shapes, as the script in Redis asks of its own. Any other
 * might refuse its key for ever, or admit it without bound.
 */
export function isSound(state: KeptState, policies: readonly Policy[]): boolean {
  const { written, last, blockedUntil, heldUntil, cells, rings } = state
  const latest = Math.max(written, last)
  return (
    Math.max(last, blockedUntil, heldUntil) <= written + FAR &&
    cells.every((cell) => cell <= EXACT) &&
    cells[BORN]! <= written &&
    rings.every((instants) => isInOrder(instants, latest)) &&
    areValid(state, policies, latest)
  )
}

function isInOrder(instants: ArrayLike<number>, latest: number): boolean {
  for (let i = 1; i < instants.length; i++) if (instants[i]! < instants[i - 1]!) return false
  return instants.length === 0 || instants[instants.length - 1]! <= latest
}

function areValid({ cells, expiresAt }: KeptState, policies: readonly Policy[], latest: number): boolean {
  let base = BORN + 1
  return policies.every((policy) => {
    const state = new State(cells, base)
    base += policy.algorithm.cells(policy)
    return policy.algorithm.isValid?.(state, policy, latest, expiresAt) ?? true
  })
}

/** The cell before those of the policies. */
const BORN = 0
/** Microseconds from a write to the last instant that it bars a key until: more than any block, hold or wait. */
const FAR = 2 ** 50
const EXACT = 2 ** 53
