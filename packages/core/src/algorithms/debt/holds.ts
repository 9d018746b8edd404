import type { Policy } from '../contract/policy.js'
import type { State } from '../contract/state.js'
import { AT, DEBT, FASTEST } from './layout.js'

/** A debt has drained before its state expires, as the limit of the last write is at most FASTEST. */
export function holds(state: State, { tick }: Policy, latest: number, expiresAt: number): boolean {
  const since = state.get(AT)
  return since <= latest && state.get(DEBT) * tick <= (expiresAt - since) * state.get(FASTEST)
}
