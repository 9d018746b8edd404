import type { Policy, Store } from '@sluice/core'
import { algorithms } from '@sluice/core/store'
import { fleetLimits, type PostedLimit } from '@sluice/metrics'
import { capacityOption, makePolicy } from '@sluice/policies'

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
function policyOf({ shape, capacity, timeZone, anchor, ...numbers }: PostedLimit): Policy | undefined {
  const [, period = '', parts] = shape.split('/')
  for (const [algorithm, { options }] of Object.entries(algorithms)) {
    const [size, part] = [capacityOption(algorithm), 'buckets' in options ? 'buckets' : 'slots']
    const span = 'every' in options ? { every: period, timeZone, anchor } : { window: Number(period) }
    const given = {
      algorithm,
      ...numbers,
      ...span,
      ...(size && { [size]: capacity }),
      ...(parts && { [part]: Number(parts) }),
    }
    const variants = Object.entries(options).flatMap(([name, { domain }]) =>
      domain && 'values' in domain && name !== 'every'
        ? domain.values.map((value) => ({ [name]: value }))
        : [],
    )
    for (const variant of [{}, ...variants]) {
      try {
        const policy = makePolicy({ ...given, ...variant })
        if (policy.shape === shape) return policy
      } catch {
        // Not an option of this algorithm.
      }
    }
  }
  return undefined
}
