import { setImmediate } from 'node:timers/promises'
import { collect } from '@sluice/harness/figures'
import { EvictionCheck } from '../../../src/stores/redis/eviction.js'
import type { RedisConnection, ScriptReply } from '../../../src/stores/redis/redis-connection.js'
import type { Report } from '../../../src/stores/store.js'

/** A check to which Redis answers, and how often each of its limiters was warned. */
function checkOf(answer: () => Promise<ScriptReply>) {
  const check = new EvictionCheck({ eval: answer } as unknown as RedisConnection, Buffer.from('key'))
  const limiter = () => {
    const report = jest.fn<void, Parameters<Report>>()
    check.warn(report)
    return report
  }
  return { check, limiter }
}

const replies = (policy: string) => async () => Buffer.from(policy)

it('every limiter of a store over a Redis that evicts is warned once, whenever it was made', async () => {
  const { check, limiter } = checkOf(replies('allkeys-lru'))
  const early = limiter()
  check.ask()
  const meanwhile = limiter()
  await setImmediate()
  check.ask()
  for (const report of [early, meanwhile, limiter()]) expect(report).toHaveBeenCalledTimes(1)
})

it.each([
  ['that evicts nothing', replies('noeviction')],
  ['that does not answer', () => Promise.reject(new Error('the connection broke'))],
])('a store over a Redis %s keeps no callback of its limiters', async (_, answer) => {
  const { check, limiter } = checkOf(answer)
  const reports = [new WeakRef(limiter())]
  check.ask()
  await setImmediate()
  reports.push(new WeakRef(limiter()))
  await setImmediate() // a WeakRef keeps what it names until the end of this turn
  collect()
  expect(reports.filter((each) => each.deref())).toEqual([])
  check.warn(() => {}) // so that the check itself is there until now
})
