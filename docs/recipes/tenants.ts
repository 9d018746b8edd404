import {
  consumeAll,
  createLimiter,
  memoryStore,
  slidingLog,
  type Store,
  type WholeDecision,
} from '@sluice/core'

/** A call on behalf of a user of a tenant. */
export interface TenantCall {
  readonly tenant: string
  readonly user: string
  /** Units that it takes of both. */
  readonly cost?: number
}

/**
 * Limits tenants and, within each, users. A call that one of the two limits denies is charged to neither: a user who is over
 * his own limit takes nothing from his tenant, and cannot lock out the others.
 */
export function tenantLimits(store: Store = memoryStore()): (call: TenantCall) => Promise<WholeDecision> {
  const tenants = createLimiter({
    name: 'tenants',
    policies: [slidingLog({ limit: 100, window: '1h' })],
    store,
  })
  const users = createLimiter({ name: 'users', policies: [slidingLog({ limit: 10, window: '1h' })], store })
  return ({ tenant, user, cost = 1 }) =>
    consumeAll([
      { limiter: tenants, key: tenant, cost },
      // The key is injective: no tenant's name can be made to end where a user's begins.
      { limiter: users, key: JSON.stringify([tenant, user]), cost },
    ])
}
