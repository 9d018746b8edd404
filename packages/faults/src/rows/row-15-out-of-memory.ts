import { createLimiter, createSemaphore, type Decision, type FailureMode, type Policy } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type Address, command, startRedis } from '@sluice/harness/redis'
import { everyAlgorithm } from '../every-algorithm.js'
import { policyOf } from '../policy-spec.js'
import type { Outcome, Row } from '../row.js'

/** Where Redis has no memory left and evicts nothing, a call that would be charged is decided by the failure mode, and says why. */
export const row: Row = { number: 15, fault: 'out of memory', warnings: ['STORE_DEGRADED'], run: exhaust }

const LIMIT = 10
const MEMORY = '3mb'
const NEIGHBOUR = 3 << 20

/**
 * Fills Redis until it refuses writes, under each failure mode. Passes if calls are decided as the mode says, with the reason,
 * spent callers are denied still, and nothing is lost once there is memory again. `share` is the part of the full load, 0 to
 * 1.
 */
async function exhaust(share: number): Promise<Outcome> {
  const callers = 500 * share
  const server = await startRedis({ args: ['--maxmemory', MEMORY, '--maxmemory-policy', 'noeviction'] })
  const store = redisStore({ host: server.host, port: server.port })
  const open = (onStoreError: FailureMode, policy: Policy) =>
    createLimiter({ name: 'oom', policies: [policy], store, onStoreError, deadline: '30s' })
  const counts = { calls: 0, degraded: 0 }
  const wrong: string[] = []
  const check = (what: string, decision: Decision, expected: Partial<Decision>) => {
    counts.calls++
    if (decision.degraded === 'oom') counts.degraded++
    for (const [name, value] of Object.entries(expected)) {
      const seen = decision[name as keyof Decision]
      if (seen !== value) wrong.push(`${what}: ${name} is ${JSON.stringify(seen)}`)
    }
  }
  const algorithms = everyAlgorithm(LIMIT).map(([title, spec]) => ({ title, policy: policyOf(spec) }))
  for (const { policy } of algorithms) {
    const limiter = open('throw', policy)
    await limiter.consume('half spent', { cost: LIMIT / 2 })
    await limiter.consume('spent', { cost: LIMIT })
  }
  // Flooded until it refuses once, and then by a neighbour, so that no buffer that comes and goes makes room again.
  const flood = open('allow', algorithms[0]!.policy)
  let flooded = 0
  while (!(await flood.consume(`flood:${flooded}`)).degraded) flooded++
  await command(server, 'CONFIG', 'SET', 'maxmemory', '0')
  await fill(server)

  for (const { title, policy } of algorithms) {
    for (const mode of ['allow', 'deny'] as const) {
      const limiter = open(mode, policy)
      const instead =
        mode === 'allow'
          ? ({ degraded: 'oom', allowed: true, reason: undefined } as const)
          : ({ degraded: 'oom', allowed: false, reason: 'degraded' } as const)
      const degraded = { degraded: undefined, allowed: false, reason: 'limit' } as const
      for (let i = 0; i < callers; i++) {
        check(`${title}, ${mode}, a new caller`, await limiter.consume(`new:${i}`), instead)
        check(`${title}, ${mode}, half spent`, await limiter.consume('half spent'), instead)
        check(`${title}, ${mode}, spent`, await limiter.consume('spent'), degraded)
      }
    }
    const failure = await open('throw', policy)
      .consume('new')
      .catch((error: unknown) => error)
    if ((failure as { code?: string }).code !== 'STORE_OOM') wrong.push(`${title}, throw: ${String(failure)}`)
  }
  const keys = await command<number>(server, 'DBSIZE')
  const semaphore = createSemaphore({ name: 'permits', limit: 2, store })
  const permits = await Promise.allSettled(
    Array.from({ length: callers }, (_, i) => semaphore.acquire(`new:${i}`, { maxWait: 0 })),
  )
  const granted = permits.filter(({ status }) => status === 'fulfilled').length
  // A reset frees memory, and the calls that travel with it get none of it.
  const limiter = open('deny', algorithms[0]!.policy)
  const beside = Array.from({ length: callers }, (_, i) => limiter.consume(`beside:${i}`))
  await Promise.all([limiter.reset('nothing'), ...beside])
  const added = (await command<number>(server, 'DBSIZE')) - keys
  if (granted > 0 || added > 0) wrong.push(`${granted} permits were granted, ${added} keys added`)
  await empty(server)
  for (const { title, policy } of algorithms) {
    const decision = await open('throw', policy).consume('half spent')
    check(`${title}, memory again`, decision, { allowed: true, remaining: LIMIT / 2 - 1 })
  }
  await store.close()
  await server.stop()
  return {
    pass: wrong.length === 0,
    figure:
      `${MEMORY}, full after ${flooded} keys: ${counts.degraded} calls by new and known callers all 'oom' and as the ` +
      `failure mode says, spent callers still denied, no permit granted and no key added${wrong[0] ? `; ${wrong.length} wrong: ${wrong[0]}` : ''}`,
  }
}

/** Fills a server with one large value and bounds its memory, so that it refuses every write that takes more. */
export async function fill(server: Address): Promise<void> {
  await command(server, 'SET', 'neighbour', 'x'.repeat(NEIGHBOUR))
  await command(server, 'CONFIG', 'SET', 'maxmemory', MEMORY)
}

/** Ends the shortage: removes what filled the server, and lifts the bound of its memory. */
export async function empty(server: Address): Promise<void> {
  await command(server, 'DEL', 'neighbour')
  await command(server, 'CONFIG', 'SET', 'maxmemory', '0')
}
