import { calendarWindow } from '@sluice/calendar'
import {
  consumeAll,
  createLimiter,
  type Decision,
  fixedWindow,
  type Limiter,
  memoryStore,
} from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import type { Store } from '@sluice/core/store'
import { machineStore } from '@sluice/machine'
import { postgresStore } from '@sluice/postgres'
import { randomFrom } from '@sluice/harness/figures'
import { serve } from './fleet-member.js'
import { type NearingJob, type NearingResult, type Place, SHARES, WINDOW_MS } from './nearing-jobs.js'

/* One process of a fleet whose charges cross shares of limits, for row 52. */

let nowMs = 0
let opened: Promise<readonly Limiter[]> | undefined
let crossed: string[] = []
let charged: Decision[] = []

/** Opens the limiters of this process, all on one store. */
async function open({ kind, address, limiters }: Place): Promise<readonly Limiter[]> {
  const clock = (): number => nowMs * 1000
  const store: Store & { ready?(): Promise<unknown> } = {
    memory: () => memoryStore({ clock }),
    machine: () => machineStore({ name: 'nearing', folder: address }),
    redis: () => redisStore(address, { clock }),
    postgres: () => postgresStore(address),
  }[kind]()
  await store.ready?.()
  return Array.from({ length: limiters }, () => {
    const policies = [
      fixedWindow({ limit: 150, window: WINDOW_MS, name: 'short' }),
      fixedWindow({ limit: 333, window: 2 * WINDOW_MS, name: 'long' }),
      calendarWindow({ limit: 400, every: 'year', name: 'year' }),
    ]
    const options = { name: 'nearing', store, policies, nearing: SHARES } as const
    const limiter = createLimiter({ ...options, deadline: '60s', onStoreError: 'throw' })
    limiter.on('nearing', ({ key, policy, share }) => void crossed.push(`${key} ${policy} ${share}`))
    return limiter
  })
}

serve<NearingJob, NearingResult>(async ({ place, nowMs: now, keys, step, calls, seed }) => {
  nowMs = now
  const limiters = await (opened ??= open(place))
  charged = charged.filter(({ key }) => keys.includes(key)) // not those of the run before
  const random = randomFrom(seed)
  const below = (most: number): number => Math.floor(random() * most)
  const any = <T>(list: readonly T[]): T => list[below(list.length)]!
  const keep = (decision: Decision): void => void (decision.charged && charged.push(decision))
  /** One charge, of any kind. */
  const charge = async (): Promise<void> => {
    const [limiter, key, cost] = [any(limiters), any(keys), 1 + below(12)]
    const kind = below(20)
    const settled = kind < 3 ? charged.splice(below(charged.length), 1)[0] : undefined
    if (settled) await settled.settle(12 + cost)
    else if (kind === 3) await limiter.charge(key, { cost })
    else if (kind === 4) keep(await limiter.acquire(key, { cost, maxWait: 0 }))
    else if (kind === 5) {
      const parts = [...new Set([key, any(keys)])].map((each) => ({ limiter, key: each, cost }))
      for (const decision of (await consumeAll(parts)).decisions) keep(decision)
    } else keep(await limiter.consume(key, { cost }))
  }
  const giveBack = async (): Promise<void> => {
    const settled = charged.splice(below(charged.length), 1)[0]
    if (settled && below(2) === 0) await settled.settle(0)
    else await any(limiters).refund(any(keys), { cost: 1 + below(60) })
  }
  return async () => {
    crossed = []
    const act = step === 'charge' ? charge : giveBack
    for (let done = 0; step !== 'read' && done < calls; done += AT_ONCE)
      await Promise.all(Array.from({ length: Math.min(AT_ONCE, calls - done) }, act))
    const read = async (key: string) => (await limiters[0]!.peek(key)).policies.map(({ used }) => used)
    const used = step === 'read' ? await Promise.all(keys.map(read)) : []
    return { crossed, used, charges: step === 'charge' ? calls : 0 }
  }
})

const AT_ONCE = 50
