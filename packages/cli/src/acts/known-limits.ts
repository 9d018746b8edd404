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

/** The limits of the store's limiters as processes have posted them, for whom no file names them. */
export async function postedLimits(store: Store): Promise<readonly KnownLimits[]> {
  return [...(await fleetLimits(store))].flatMap(([name, posted]) => {
    const policies = posted.flatMap((each) => policyOf(each) ?? [])
    return policies.length === posted.length ? [{ name, policies }] : []
  })
}

/** A policy of this shape and these numbers, by whichever algorithm makes it; undefined for a shape that this version does not know. */
function policyOf({ shape, capacity, ...numbers }: PostedLimit): Policy | undefined {
  const [, span = '', parts] = shape.split('/')
  const sizes = parts ? { buckets: Number(parts), slots: Number(parts) } : {}
  const given = { ...numbers, ...sizes, window: Number(span), every: span, capacity, burst: capacity }
  for (const factory of Object.values(algorithms) as readonly PolicyFactory<object>[]) {
    const words = Object.entries(factory.options).flatMap(([name, { domain }]) =>
      domain && 'values' in domain && name !== 'every'
        ? domain.values.map((value) => ({ [name]: value }))
        : [],
    )
    for (const way of [{}, ...words]) {
      try {
        // Inherited options are read and not checked, so that a factory gets those of all others too.
        const policy = factory(Object.create({ ...given, ...way }) as object)
        if (policy.shape === shape) return policy
      } catch {
        // Not an option of this algorithm.
      }
    }
  }
  return undefined
}
