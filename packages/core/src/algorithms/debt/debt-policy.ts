import { type DeclarationOf, type Settings, whole } from '../../values/options.js'
import { type Algorithm, POLICY, Policy, type PolicyOptions } from '../contract/policy.js'
import { debtWithSlots } from './slots.js'

/** The options that gcra, token bucket and leaky bucket share. */
export interface DebtOptions extends PolicyOptions {
  /**
   * Number of slots, 4 to 64, that record the charges of the last two windows, so that units can be given back long after
   * they were charged. A slot takes 8 bytes per key.
   * @default none: units that have drained since their charge are not given back
   */
  readonly slots?: number
}

export const DEBT_POLICY = { ...POLICY, slots: whole(4, 64) } satisfies DeclarationOf<DebtOptions>

/**
 * Makes a policy of gcra, token bucket or leaky bucket from its checked options. All three count a debt that drains, so with
 * the option `slots`, by which charges can be given back late, they have one algorithm; otherwise it is `plain`, that of the
 * caller. `capacity` is what the user gave for the most units at once, undefined for a capacity equal to the limit; messages
 * name that option by `capacityName`, such as 'burst'. `multiplied` has long windows counted in milliseconds, as debts are
 * multiplied by the window and must stay exact.
 */
export function debtPolicy(
  plain: Algorithm,
  settings: Settings<typeof DEBT_POLICY>,
  capacityName: string,
  capacity: number | undefined,
): Policy {
  const numbers = { capacity: { name: capacityName, value: capacity }, multiplied: true }
  if (settings.slots === undefined) return new Policy(plain, settings, numbers)
  return new Policy(debtWithSlots, settings, { ...numbers, buckets: settings.slots })
}
