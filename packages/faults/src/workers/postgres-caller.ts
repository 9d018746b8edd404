import { createLimiter, gcra } from '@sluice/core'
import { type PostgresStore, postgresStore } from '@sluice/postgres'
import { serve } from './fleet-member.js'

/* One process of a fleet on one Postgres, for row 41. */

/** Calls for one key, all at once. Nothing of the limit comes back while a row runs. */
export interface PostgresJob {
  readonly url: string
  readonly key: string
  readonly limit: number
  readonly calls: number
}

export interface PostgresResult {
  readonly admitted: number
  readonly degraded: number
}

let store: PostgresStore | undefined

serve<PostgresJob, PostgresResult>(async ({ url, key, limit, calls }) => {
  await store?.close()
  store = postgresStore(url)
  await store.ready()
  const policies = [gcra({ limit, window: '1d', burst: limit })]
  const limiter = createLimiter({ name: 'race', policies, store, deadline: '30s', onStoreError: 'throw' })
  return async () => {
    const decisions = await Promise.all(Array.from({ length: calls }, () => limiter.consume(key)))
    return {
      admitted: decisions.filter(({ allowed }) => allowed).length,
      degraded: decisions.filter(({ degraded }) => degraded !== undefined).length,
    }
  }
})
