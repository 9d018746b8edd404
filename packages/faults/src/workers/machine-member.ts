import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, gcra, type Limiter, type Store } from '@sluice/core'
import { machineStore } from '@sluice/machine'
import { serve } from './fleet-member.js'
import { LIMIT, type MachineJob, type MachineResult } from './machine-jobs.js'

/* One process of a machine, for row 35. */

const policies = [gcra({ limit: LIMIT, window: '1d' })]
const CALLERS = 32
const LOAD_MS = 2

const opened: Store[] = []
let seen = { admitted: 0, degradedAt: [] as number[] }
let timer: ReturnType<typeof setInterval>

serve<MachineJob, MachineResult>(async (job) => {
  if (job.kind !== 'count' && job.kind !== 'end') {
    for (const store of opened.splice(0)) await store.close()
    seen = { admitted: 0, degradedAt: [] }
  }
  return async () => ({ ...seen, serves: false, remaining: [], ...(await perform(job)) })
})

/** Does a job of row 35: calls under load, counts, binds names, races or ends. Returns what it has seen. */
async function perform(job: MachineJob): Promise<Partial<MachineResult>> {
  if (job.kind === 'count') return seen
  if (job.kind === 'end') {
    clearInterval(timer)
    await pause(100)
    return seen
  }
  if (job.kind === 'binds')
    return { remaining: await Promise.all(job.names.map((name, i) => bind(job.folder, name, job.at[i]!))) }
  const [store, limiter] = open(job.folder, job.name)
  if (job.kind === 'race') {
    await Promise.all(
      Array.from({ length: CALLERS }, () => callAgain(limiter, Math.ceil(job.calls / CALLERS))),
    )
    return seen
  }
  await call(limiter)
  timer = setInterval(() => void call(limiter), LOAD_MS)
  // Only the process that serves answers at once.
  return {
    serves: 'at' in store.keyspace('other', policies, () => {}).decide('peek', 'k', 0, 0),
  }
}

/** The units that are left after one call in a store that is opened at the instant `at`. */
async function bind(folder: string, name: string, at: number): Promise<number> {
  await pause(Math.max(0, at - Date.now() - LOAD_MS))
  while (Date.now() < at); // so that both do it at the same moment
  return (await open(folder, name, '10s')[1].consume('k')).remaining
}

/** Under 'deny' only the store admits anything. */
function open(folder: string, name: string, deadline = '50ms'): [Store, Limiter] {
  const store = machineStore({ name, folder, denialCache: false })
  opened.push(store)
  return [store, createLimiter({ name: 'api', policies, store, deadline, onStoreError: 'deny' })]
}

/** Makes so many calls, one after the other. */
async function callAgain(limiter: Limiter, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await call(limiter)
}

/** Makes one call, and notes whether it was admitted and whether another than the store decided. */
async function call(limiter: Limiter): Promise<void> {
  const madeAt = Date.now()
  const { allowed, degraded } = await limiter.consume('k')
  if (allowed) seen.admitted++
  if (degraded !== undefined) seen.degradedAt.push(madeAt)
}
