import type { Policy, Store } from '@sluice/core'
import { algorithms, type PolicyFactory } from '@sluice/core/store'
import { fleetLimits, type PostedLimit } from '@sluice/metrics'

/** The limits of one limiter, as a policy file has them, or as processes have posted them; `by` is the part of a call that names the caller. */
export interface KnownLimits {
  readonly name: string
  readonly policies: readonly Policy[]
  readonly plans?: ReadonlyMap<string, readonly Policy[]> | undefined
  readonly by?: string | undefined
}

/**
 * Returns the limits of a store's limiters, as processes have posted them: for operators without a policy file. A limiter is left
 * out if this version does not know one of its policies.
 */
export async function postedLimits(store: Store): Promise<readonly KnownLimits[]> {
  return [...(await fleetLimits(store))].flatMap(([name, posted]) => {
    const policies = posted.flatMap((limit) => policyFrom(limit) ?? [])
    return policies.length === posted.length ? [{ name, policies }] : []
  })
}

/**
 * Makes the policy of a posted limit from its numbers and its shape, such as `gcra/60000`. Each algorithm is tried, also with each
 * word that one of its options takes, until a policy has that shape. Undefined for a shape that this version does not know.
 */
function policyFrom({ shape, capacity, ...numbers }: PostedLimit): Policy | undefined {
  const [, span = '', parts] = shape.split('/')
  const partCounts = parts ? { buckets: Number(parts), slots: Number(parts) } : {}
  const options = { ...numbers, ...partCounts, window: Number(span), every: span, capacity, burst: capacity }
  for (const factory of Object.values(algorithms) as readonly PolicyFactory<object>[]) {
    const optionsWithWords = Object.entries(factory.options).flatMap(([name, { domain }]) =>
      domain && 'values' in domain && name !== 'every' ? domain.values.map((word) => ({ [name]: word })) : [],
    )
    for (const word of [{}, ...optionsWithWords]) {
      try {
        // Inherited options are read and not checked, so that a factory gets those of all others too.
        const policy = factory(Object.create({ ...options, ...word }) as object)
        if (policy.shape === shape) return policy
      } catch {
        // Not an option of this algorithm.
      }
    }
  }
  return undefined
}
