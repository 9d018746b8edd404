import { createLimiter, memoryStore, type Policy, slidingLog, type Store, tokenBucket } from '@sluice/core'
import { byUser, rateLimit } from '@sluice/express'
import { type Request, Router } from 'express'

/** What a tenant may do, as it lies in your database. A limit of 0 suspends a tenant: nothing passes until it is raised. */
export interface Plan {
  readonly perMinute: number
  readonly perDay: number
}

/** Plans by name, for tenants that have no numbers of their own. */
export const PLANS: Readonly<Record<string, Plan>> = {
  free: { perMinute: 60, perDay: 1000 },
  pro: { perMinute: 600, perDay: 100_000 },
  suspended: { perMinute: 0, perDay: 0 },
}

/**
 * Limits every request by its tenant's plan. `planOf` is asked about each request, so a changed plan acts from the next one on,
 * in every process: keep its answers in memory for a few seconds if it asks a database.
 *
 * All plans have the same shapes (algorithms and windows, in order), so they share what a tenant has used: a tenant that moves
 * to a larger plan keeps its usage under the new numbers, and gains nothing by moving to and fro.
 */
export function planLimits(
  tenantOf: (req: Request) => string | undefined,
  planOf: (tenant: string) => Plan | Promise<Plan>,
  store: Store = memoryStore(),
): Router {
  const policiesOf = policiesByPlan()
  const limiter = createLimiter({ name: 'plans', policies: policiesOf(PLANS['free']!), store })
  const router = Router()
  router.use(
    rateLimit({
      limiter,
      key: byUser(tenantOf, 'api'),
      // Requests without a tenant are counted by address, under the free plan.
      policies: async (req) => {
        const tenant = tenantOf(req)
        return tenant === undefined ? undefined : policiesOf(await planOf(tenant))
      },
      onDenied: (_req, res, { reason, limit, retryAfterMs }) => {
        // A limit of 0 has no end to wait for, and no Retry-After.
        if (limit === 0) res.json({ error: 'this account is suspended' })
        else res.json({ error: 'over the limit of your plan', reason, retryAfterMs })
      },
    }),
  )
  return router
}

/** Makes the policies of a plan once, however many tenants have its numbers. */
function policiesByPlan(): (plan: Plan) => readonly Policy[] {
  const made = new Map<string, readonly Policy[]>()
  return ({ perMinute, perDay }) => {
    const id = `${perMinute}/${perDay}`
    const known = made.get(id)
    if (known) return known
    const policies = [
      slidingLog({ limit: perMinute, window: '1m', name: 'minute' }),
      tokenBucket({ limit: perDay, window: '1d', name: 'day' }),
    ]
    made.set(id, policies)
    return policies
  }
}
