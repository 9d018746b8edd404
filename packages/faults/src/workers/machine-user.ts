import { unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLimiter, gcra } from '@sluice/core'
import { type MachineStore, machineStore } from '@sluice/machine'
import { serve } from './fleet-member.js'

/* One process of a user, with default stores in the folder for temporary files that a job names. For row 42. */

export interface UserJob {
  readonly uid: number
  readonly temporary: string
  /** Two stores, of which the second one finds the first folder free, and that while the first one claims the next. */
  readonly isPair: boolean
  readonly limit: number
}

export interface UserResult {
  readonly admitted: number
  /** Stores that serve. */
  readonly serving: number
}

/** Of each store. */
const CALLS = 6

let former: readonly MachineStore[] = []

serve<UserJob, UserResult>(async ({ uid, temporary, isPair, limit }) => {
  for (const store of former) await store.close()
  process.env['TMPDIR'] = temporary
  if (process.getuid!() !== uid) {
    process.setgid!(uid)
    process.setuid!(uid)
  }
  const taken = join(temporary, `sluice-${uid}`)
  return async () => {
    if (isPair) writeFileSync(taken, '')
    const stores = [machineStore({ name: 'users' })]
    if (isPair) {
      for (let i = 0; i < 50; i++) await Promise.resolve() // until it claims: it listens in a later turn
      unlinkSync(taken)
      stores.push(machineStore({ name: 'users' }))
    }
    former = stores
    return callAll(stores, limit)
  }
})

/**
 * Makes calls on all stores of this process at once. Returns how many were admitted, and how many of the stores serve the
 * others.
 */
async function callAll(stores: readonly MachineStore[], limit: number): Promise<UserResult> {
  await Promise.all(stores.map((store) => store.ready()))
  const policies = [gcra({ limit, window: '1d' })]
  const limiters = stores.map((store) =>
    createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' }),
  )
  const calls = limiters.flatMap((limiter) => Array.from({ length: CALLS }, () => limiter.consume('k')))
  const decisions = await Promise.all(calls)
  const serving = stores.filter((store) => store.keyspace('other', policies, () => {}).answersAtOnce)
  return { admitted: decisions.filter(({ allowed }) => allowed).length, serving: serving.length }
}
