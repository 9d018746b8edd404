import { createLimiter, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { command, pause, startSentinel, until } from '@sluice/harness/redis'
import type { Outcome } from '../row.js'
import { mayBeLost, startTraffic, type Traffic } from './row-12-traffic.js'

const LIMIT = 50_000
/** The failures that callers may meet while there is no master. */
const EXPECTED = ['STORE_UNAVAILABLE', 'STORE_TIMEOUT']

/** Sentinel makes a master of the replica: because the master died, or because it was asked to change their roles. */
export async function sentinel(how: 'death' | 'planned', loadMs: number): Promise<Outcome> {
  const setup = await startSentinel({ sentinels: how === 'death' ? 3 : 1 })
  const sentinels = setup.sentinels.map(({ host, port }) => ({ host, port }))
  const store = redisStore({ sentinels, name: setup.masterName })
  const limiter = createLimiter({
    name: 'sentinel',
    store,
    policies: [slidingLog({ limit: LIMIT, window: '1d' })],
    deadline: '1s',
    onStoreError: 'throw',
  })
  try {
    await until('the first decision', () => limiter.consume('warm'))
    await until('replication to flow', async () => (await command<number>(setup.replica, 'DBSIZE')) > 0)
    const traffic = startTraffic(limiter, 'user')
    await pause(loadMs)
    const diedAt = performance.now()
    await setup.failover(how)
    const switchedAt = performance.now()
    const decides = await startsAgain(traffic, switchedAt)
    await traffic.stop()
    const met = [...traffic.failures].map(([code, times]) => `${times} ${code}`).join(', ') || 'nothing'
    if (!decides) return { pass: false, figure: `${how}: no decisions by the new master, met ${met}` }
    const admitted = traffic.admissions.length
    let remaining = 0
    await until('the count', async () => ((remaining = (await limiter.peek('user')).remaining), true))
    const lost = Math.max(0, admitted - (LIMIT - remaining))
    // A planned change has two masters for a while, and what the old one takes is lost for every client.
    const most = how === 'planned' ? Infinity : mayBeLost(traffic, diedAt, 0)
    return {
      pass: [...traffic.failures.keys()].every((code) => EXPECTED.includes(code)) && lost <= most,
      figure: `${how}: lost ${lost} of ${admitted} (bar ${how === 'planned' ? 'none' : most}), met ${met}`,
    }
  } finally {
    await limiter.close()
    await store.close()
    await setup.stop()
  }
}

/** Whether calls made after the change are decided, within 10 s. */
function startsAgain({ admissions }: Traffic, switchedAt: number): Promise<boolean> {
  const decided = until('a decision', () => (admissions.at(-1) ?? 0) > switchedAt + 300, 10_000)
  return decided.then(
    () => true,
    () => false,
  )
}
