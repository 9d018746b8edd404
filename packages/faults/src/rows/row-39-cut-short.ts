import type { Limiter, Store } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import {
  type Cluster,
  command,
  pause,
  type Proxy,
  startProxy,
  startRedis,
  until,
} from '@sluice/harness/redis'
import type { PolicySpec } from '../policy-spec.js'
import { callFor, type Limiters, limitersOf, usedOf } from '../scenarios/whole-calls.js'
import { type Step, watched } from '../scenarios/watched-store.js'
import type { Outcome } from '../row.js'

const POLICY: PolicySpec = ['slidingLog', { limit: 50, window: '1d' }]
const USER_LIMIT = 20
const [DEADLINE_MS, GRACE_MS] = [200, 50]
/** So long that a second deadline after it would be seen. */
const PEEK_MS = 120
/** How long an undo may still be on its way when Redis answers again. */
const UNDO_MS = 2000

/** The events in the middle of a call on two keys that no single program holds. */
interface Cut {
  readonly title: string
  readonly setUp: SetUp
  /** Called, and waited for, before each step on a key. */
  before(step: Step, key: string): Promise<void> | void
  mend(): unknown
  /** Units that a denied call may keep. */
  readonly most: number
}

/** Each outcome is of `times` calls, which are to be answered in time and to keep what is stated. */
export async function cutShort(cluster: Cluster, times: number): Promise<Outcome[]> {
  const onCluster = await openOnCluster(cluster)
  const onServers = await openOnServers()
  const outcomes: Outcome[] = []
  try {
    for (const cut of [...stops(onCluster, cluster), ...losses(onServers)]) {
      outcomes.push(await callThrough(cut, times))
    }
  } finally {
    await onCluster.close()
    await onServers.close()
  }
  return outcomes
}

/** The ways to stop a node of a Cluster in the middle of a call on two keys, each with what makes it whole again. */
function stops(setUp: Awaited<ReturnType<typeof openOnCluster>>, { masters }: Cluster): Cut[] {
  const { tenant, user, rivals } = setUp
  const stop = (): void => masters[0]!.pause()
  const stopped = { setUp, mend: () => masters[0]!.resume(), most: 0 }
  return [
    {
      ...stopped,
      title: 'half of the parts answered',
      before: (step, key) => (step === 'try' && key === tenant ? stop() : undefined),
    },
    {
      ...stopped,
      title: 'stopped between peek and charge',
      before(step, key) {
        if (step === 'commit' && key === tenant) stop()
        return step === 'try' ? pause(PEEK_MS) : undefined
      },
    },
    {
      ...stopped,
      title: 'stopped between charge and undo',
      before(step, key) {
        if (step === 'cancel') stop()
        if (step === 'try') return pause(PEEK_MS)
        return step === 'commit' && key === user ? rivals.charge(user, { cost: USER_LIMIT }) : undefined
      },
    },
  ]
}

/** The ways to lose a connection in the middle of a call on two keys, each with what makes it whole again. */
function losses(setUp: Awaited<ReturnType<typeof openOnServers>>): Cut[] {
  const { tenant, proxy } = setUp
  const lost = { setUp, mend: () => proxy.heal(), most: 1 }
  return [
    {
      ...lost,
      title: 'reply to a charge lost',
      before: (step, key) => (step === 'commit' && key === tenant ? proxy.cutOnReply() : undefined),
    },
    {
      ...lost,
      title: 'connection lost before the charge',
      before: (step, key) => (step === 'commit' && key === tenant ? proxy.refuse() : undefined),
    },
  ]
}

/**
 * Makes calls on two keys that are each cut short in one way. Passes if units that stay charged for a denied call are no more
 * than `most` a call.
 */
async function callThrough({ title, setUp, before, mend, most }: Cut, times: number): Promise<Outcome> {
  const { limiters, tenant, user, hook } = setUp
  const decides = async (): Promise<boolean> => {
    const peeks = await Promise.all([limiters.tenants.peek(tenant), limiters.users.peek(user)])
    return peeks.every(({ degraded, remaining, limit }) => degraded === undefined && remaining === limit)
  }
  let [slowest, denied, kept] = [0, 0, 0]
  for (let i = 0; i < times; i++) {
    await until('Redis to decide', decides)
    hook.before = before
    const began = performance.now()
    const { allowed } = await callFor(limiters, tenant, user)
    slowest = Math.max(slowest, performance.now() - began)
    hook.before = () => undefined
    if (!allowed) denied++
    await mend()
    kept += await keptOf(setUp)
    await limiters.tenants.reset(tenant)
    await limiters.users.reset(user)
  }
  return {
    pass: slowest <= DEADLINE_MS + GRACE_MS && denied === times && kept <= most * times,
    figure:
      `${title}: answered within ${slowest.toFixed(0)} ms (bar ${DEADLINE_MS + GRACE_MS}), ${denied} of ${times} denied, ` +
      `${kept} units kept (bar ${most * times})`,
  }
}

/** Units that a denied call keeps, once what undoes it has had its time; those of a rival are not its own. */
async function keptOf({ limiters, tenant, user }: SetUp): Promise<number> {
  let kept = NaN
  const isUndone = async (): Promise<boolean> => {
    const ofUser = await usedOf(limiters.users, user)
    kept = (await usedOf(limiters.tenants, tenant)) + (ofUser % USER_LIMIT)
    return kept === 0
  }
  await until('the undo', isUndone, UNDO_MS).catch(() => {})
  return kept
}

interface SetUp {
  readonly limiters: Limiters
  readonly tenant: string
  /** Its key lies elsewhere than the tenant's. */
  readonly user: string
  readonly hook: Pick<Cut, 'before'>
  close(): Promise<void>
}

/** Opens limiters on a Cluster, with keys so that the tenant's state lies on the first master and the user's on another. */
async function openOnCluster({ masters }: Cluster): Promise<SetUp & { rivals: Limiter }> {
  const store = redisStore({ cluster: masters.map(({ host, port }) => ({ host, port })) })
  const { tenants, users } = limitersOf(store, POLICY)
  const isOnFirst = async (limiter: Limiter, key: string): Promise<boolean> => {
    await limiter.consume(key)
    const found = await command<string[]>(masters[0]!, 'KEYS', `*:${limiter.name}:*:${key}`)
    await limiter.reset(key)
    return found.length > 0
  }
  let [tenant, user] = ['tenant', 'user']
  while (!(await isOnFirst(tenants, tenant))) tenant += '+'
  while (await isOnFirst(users, user)) user += '+'
  const hook: SetUp['hook'] = { before: () => undefined }
  const limiters = limitersOf(hooked(store, hook), POLICY, DENYING)
  return { limiters, tenant, user, hook, rivals: users, close: async () => store.close() }
}

/** Opens limiters on two servers, so that each key is on one of its own; the tenant's lies behind a proxy. */
async function openOnServers(): Promise<SetUp & { proxy: Proxy }> {
  const [one, other] = await Promise.all([startRedis(), startRedis()])
  const proxy = await startProxy(one)
  const stores = [proxy, other].map(({ host, port }) => redisStore({ host, port }))
  const hook: SetUp['hook'] = { before: () => undefined }
  const [far, near] = stores.map((store) => limitersOf(hooked(store, hook), POLICY, DENYING))
  const limiters = { tenants: far!.tenants, users: near!.users }
  const close = async (): Promise<void> => {
    for (const store of stores) await store.close()
    await proxy.close()
    await Promise.all([one.stop(), other.stop()])
  }
  return { limiters, tenant: 'tenant', user: 'user', hook, proxy, close }
}

const DENYING = { deadline: DEADLINE_MS, onStoreError: 'deny' } as const

/** The store with a function that is called before each step of a call on several keys. */
function hooked(store: Store, hook: SetUp['hook']): Store {
  return watched(store, (step, key) => hook.before(step, key))
}
