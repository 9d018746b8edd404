import { closeSync, openSync, writeSync } from 'node:fs'
import { consumeAll, createLimiter, createSemaphore, reserveAll } from '@sluice/core'
import type { Limiter, LimiterOptions } from '@sluice/core'
import type { Semaphore, Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { machineStore } from '@sluice/machine'
import type { Address } from '@sluice/harness/redis'
import { policyOf, type PolicySpec } from '../policy-spec.js'
import { watched } from './watched-store.js'

/* Calls on behalf of users of a tenant, each of them on both keys, for row 39. */

/** Where the state of the keys is. */
export type Place =
  | { readonly redis: Address }
  | { readonly cluster: readonly Address[] }
  | { readonly machine: string; readonly folder: string }
  | { readonly store: Store }

export interface WholeJob {
  readonly place: Place
  readonly tenant: string
  readonly policy: PolicySpec
  /** The callers whose turn it is, one after the other. */
  readonly users: readonly string[]
  readonly calls: number
  readonly callers: number
  /** Permits of the tenant, of which each call takes one beside the keys. Default: the calls take none. */
  readonly atOnce?: number
  /** Whether each call reserves its units. */
  readonly reserves?: boolean
  /** A file that gets a byte for each call that passed, before its caller calls again. */
  readonly passes?: string
}

export interface WholeResult {
  readonly passed: number
  /** Charges that were undone because a race was lost. */
  readonly undone: number
  /** Calls that got no permit. */
  readonly refused: number
}

/** Opens the store of a job, and makes its calls. */
export async function openWholes(job: WholeJob) {
  const { place, tenant, policy, users, calls, callers, passes } = job
  const seen = { passed: 0, undone: 0, refused: 0 }
  const opened = storeAt(place)
  const count = (step: string): void => void (step === 'cancel' && seen.undone++)
  const limiters = limitersOf('cluster' in place ? watched(opened, count) : opened, policy, settingsOf(job))
  const semaphore = job.atOnce === undefined ? undefined : semaphoreOf(opened, job.atOnce)
  await limiters.tenants.peek(tenant)
  const file = passes === undefined ? undefined : openSync(passes, 'a')
  let made = 0
  const callAgain = async (): Promise<void> => {
    while (made < calls) {
      const whole = await callFor(limiters, tenant, users[made++ % users.length]!, semaphore)
      if (whole.denied?.reason === 'concurrency') seen.refused++
      if (!whole.allowed) continue
      await whole.release()
      seen.passed++
      if (file !== undefined) writeSync(file, '.')
    }
  }
  return {
    async call(): Promise<WholeResult> {
      await Promise.all(Array.from({ length: callers }, callAgain))
      if (file !== undefined) closeSync(file)
      return seen
    },
    close: () => closeAt(place, opened),
  }
}

/** Whether all permits of a job's tenant are free. */
export async function areFree({ place, tenant, atOnce = 0 }: WholeJob): Promise<boolean> {
  const store = storeAt(place)
  const semaphore = semaphoreOf(store, atOnce)
  const taken = Array.from({ length: atOnce }, () => semaphore.acquire(tenant, { maxWait: '2s' }))
  const permits = await Promise.all(taken)
  await Promise.all(permits.map((permit) => permit.release()))
  await closeAt(place, store)
  return permits.every(({ allowed }) => allowed)
}

/** The permits of tenants, which stay taken for an hour after their holder. */
function semaphoreOf(store: Store, limit: number): Semaphore {
  return createSemaphore({ name: 'at once', limit, store, deadline: '30s', lease: '1h' })
}

/** Units that are charged to the tenant, and to all users. */
export async function chargedTo(job: WholeJob): Promise<readonly number[]> {
  const { place, tenant, policy, users } = job
  const store = storeAt(place)
  const limiters = limitersOf(store, policy, settingsOf(job))
  const ofUsers = await Promise.all(users.map((user) => usedOf(limiters.users, user)))
  const charged = [await usedOf(limiters.tenants, tenant), ofUsers.reduce((sum, units) => sum + units, 0)]
  await closeAt(place, store)
  return charged
}

/** The units of a key that are in use. */
export async function usedOf(limiter: Limiter, key: string): Promise<number> {
  const { limit, remaining } = await limiter.peek(key)
  return limit - remaining
}

const SETTINGS = { deadline: '30s', onStoreError: 'throw' } as const

const settingsOf = ({ reserves }: WholeJob): Partial<LimiterOptions> =>
  reserves ? { ...SETTINGS, reservations: {} } : SETTINGS

export interface Limiters {
  readonly tenants: Limiter
  readonly users: Limiter
}

/** The limiters of a tenant and of its users under one algorithm: a user has two fifths of what the tenant has. */
export function limitersOf(
  store: Store,
  [factory, options]: PolicySpec,
  settings: Partial<LimiterOptions> = SETTINGS,
): Limiters {
  const open = (name: string, limit: number): Limiter =>
    createLimiter({ name, policies: [policyOf([factory, { ...options, limit }])], store, ...settings })
  return { tenants: open('tenants', options.limit), users: open('users', 0.4 * options.limit) }
}

/** One call on two keys, that of a tenant and that of a user, and on a permit of the tenant if there is a semaphore: all, or none. */
export function callFor({ tenants, users }: Limiters, tenant: string, user: string, semaphore?: Semaphore) {
  const keys = [
    { limiter: tenants, key: tenant },
    { limiter: users, key: user },
  ]
  const permits = semaphore ? [{ semaphore, key: tenant }] : []
  if (tenants.reserves)
    return reserveAll([...keys.map((key) => ({ ...key, ttl: '1h' as const })), ...permits])
  return consumeAll([...keys, ...permits])
}

/** A store on what a place names; in memory the one that it holds. */
function storeAt(place: Place): Store {
  if ('store' in place) return place.store
  if ('redis' in place) return redisStore(place.redis)
  if ('machine' in place) return machineStore({ name: place.machine, folder: place.folder })
  return redisStore({ cluster: place.cluster })
}

/** Closes a store, unless its place holds it for others too. */
async function closeAt(place: Place, store: Store): Promise<void> {
  if (!('store' in place)) await store.close()
}
