import { type DeclarationOf, oneOf } from '../values/options.js'
import { type Algorithm, factory, POLICY, Policy } from './contract/policy.js'
import type { PolicyFactory, PolicyOptions } from './contract/policy.js'
import type { State } from './contract/state.js'

/** Start of the newest counted span, in microseconds, and the units booked in it. */
const START = 0
const COUNT = 1

export interface WideWindowOptions extends PolicyOptions {
  /**
   * How many windows are counted together: two or three.
   * @default 'double'
   */
  readonly width?: 'double' | 'triple'
}

const WIDE_WINDOW = {
  ...POLICY,
  width: oneOf(['double', 'triple'], 'double'),
} satisfies DeclarationOf<WideWindowOptions>

/**
 * At most `limit` in each two (or three) windows together, counted from the Unix epoch.
 * @throws {PolicyError} when a number is not positive and whole.
 */
export const wideWindow: PolicyFactory<WideWindowOptions> = /* @__PURE__ */ factory(
  'wideWindow',
  WIDE_WINDOW,
  ({ width, ...settings }) => new Policy(width === 'triple' ? triple : double, settings),
)

const double = /* @__PURE__ */ counting('wide-window', 2)
const triple = /* @__PURE__ */ counting('wide-window-triple', 3)

/** The algorithm that counts this many windows together. */
function counting(name: string, windows: number): Algorithm {
  const length = (policy: Policy): number => windows * policy.window
  const startOf = (policy: Policy, instant: number): number => instant - (instant % length(policy))
  const countAt = (state: State, policy: Policy, instant: number): number =>
    startOf(policy, instant) > state.get(START) ? 0 : state.get(COUNT)

  return {
    name,
    ring: false,
    cells: () => 2,

    earliest(state, policy, from, cost) {
      if (cost > policy.limit) return Infinity
      if (countAt(state, policy, from) + cost <= policy.limit) return from
      return startOf(policy, from) + length(policy)
    },

    admit(state, policy, at, cost) {
      const start = startOf(policy, at)
      if (start < state.get(START)) return 0
      const before = countAt(state, policy, at)
      const count = Math.max(0, Math.min(Math.max(before, 2 * policy.limit), before + cost))
      state.set(START, start)
      state.set(COUNT, count)
      return Math.abs(count - before)
    },

    view(state, policy, now, view) {
      const count = countAt(state, policy, now)
      view.remaining = policy.limit - count
      view.resetAt = count === 0 ? now : state.get(START) + length(policy)
    },

    release(state, policy, now, charge, units) {
      const start = state.get(START)
      if (startOf(policy, charge.at) !== start || startOf(policy, now) > start) return 0
      const given = Math.min(units, state.get(COUNT))
      state.set(COUNT, state.get(COUNT) - given)
      return given
    },

    isValid: (state, policy, latest) => {
      const start = state.get(START)
      return start <= latest && start % length(policy) === 0
    },

    bounds: {
      most: (policy, span) => policy.limit * (Math.ceil((span - 1) / length(policy)) + 1),
      reach: length,
      scale: length,
    },
  }
}
