import type { Algorithm, Charge, Policy } from '../contract/policy.js'
import type { State } from '../contract/state.js'
import { AT, DEBT, FASTEST } from './layout.js'
import * as slots from './slots.js'

/** What is left of the debt at an instant. */
type DebtAt = (this: void, state: State, policy: Policy, instant: number) => number

/** The algorithm of a debt whose newest charges are also counted in slots, so that they can be released later. */
export function withSlots(plain: Algorithm, debtAt: DebtAt): Algorithm {
  /** As without slots; the units are also counted in the slot of `at`. */
  function admit(state: State, policy: Policy, at: number, cost: number): number {
    forgetOtherLimits(state, policy)
    const isFirst = debtAt(state, policy, at) === 0
    const isSteady = state.get(FASTEST) <= policy.limit
    const units = plain.admit(state, policy, at, cost)
    if (cost < 0) return units
    if (isFirst && isSteady) slots.begin(state, policy, at)
    slots.record(state, policy, at, units)
    return units
  }

  /** As without slots, unless the charge is in a slot: then the debt is computed again without its units. */
  function release(state: State, policy: Policy, now: number, charge: Charge, units: number): number {
    forgetOtherLimits(state, policy)
    const debt = debtAt(state, policy, now)
    const given = plain.release(state, policy, now, charge, units)
    if (!slots.take(state, policy, charge, units)) return given
    const owed = slots.recount(state, policy, now)
    if (owed >= state.get(DEBT)) return given
    state.set(DEBT, owed)
    state.set(AT, now)
    return Math.min(units, (debt - owed) / policy.windowTicks)
  }

  const { take: _take, ...shared } = plain
  return {
    ...shared,
    name: `${plain.name}-slots`,
    cells: slots.cells,
    admit,
    release,
    check(policy, name) {
      plain.check?.(policy, name)
      slots.checkSlots(policy, name)
    },
  }
}

/** The slots hold the debt of one limit only. */
function forgetOtherLimits(state: State, policy: Policy): void {
  const fastest = state.get(FASTEST)
  if (fastest !== 0 && fastest !== policy.limit) slots.forget(state)
}
