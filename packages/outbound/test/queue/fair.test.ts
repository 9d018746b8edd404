import { createSemaphore, InputError, PolicyError } from '@sluice/core'
import { createQueue, limitFetch, type QueueOptions } from '../../src/index.js'
import { open, outcome, pass, useFakeTime } from './open-queue.js'

useFakeTime()

/** The key of a call names its tenant; the semaphore has one permit, so that calls go out one by one. */
const one = () => createSemaphore({ limit: 1 })
const byKey: QueueOptions['fair'] = (_, { key }) => String(key)

describe('a fair queue', () => {
  it('does not have 27 calls of nine tenants wait for 300 of one', async () => {
    const queue = createQueue({ semaphore: one(), fair: (fn) => tenantOf.get(fn)! })
    const tenantOf = new Map<unknown, string>()
    const served: string[] = []
    const add = (tenant: string) => {
      const job = async () => void served.push(tenant)
      tenantOf.set(job, tenant)
      return queue.run(job)
    }
    const calls = Array.from({ length: 300 }, () => add('large'))
    for (let i = 0; i < 27; i++) calls.push(add(`small ${i % 9}`))
    await pass(1000)
    await Promise.all(calls)
    // In three rounds of ten, behind the call that was out already and the one whose permit was asked for.
    expect(served.slice(0, 32).filter((tenant) => tenant !== 'large')).toHaveLength(27)
  })

  it('serves by weight, and by cost', async () => {
    const served: string[] = []
    const queue = createQueue({
      semaphore: one(),
      fair: (_, { maxWait }) => String(maxWait),
      weight: (t) => (t === '2h' ? 1 : 2),
    })
    for (const [maxWait, cost] of [
      ['3h', 1],
      ['2h', 2],
      ['4h', 1],
    ] as const)
      for (let i = 0; i < 8; i++)
        outcome(queue.run(async () => void served.push(`${maxWait[0]}`), { maxWait: maxWait as '2h', cost }))
    await pass(1000)
    expect(served.slice(8, 17).filter((tenant) => tenant === '2')).toHaveLength(1)
  })

  it('is fair to requests by what names their tenant', async () => {
    const sent: string[] = []
    const fetch = limitFetch(
      async (input) => {
        sent.push(new URL(input).pathname)
        return new Response()
      },
      { semaphore: one(), key: 'all', fair: ({ url }) => url.pathname[1]! },
    )
    const calls = ['/a1', '/a2', '/a3', '/a4', '/b1', '/b2'].map((path) =>
      outcome(fetch(`https://api.example${path}`)),
    )
    await pass(1000)
    expect(calls.every(({ value }) => value?.ok)).toBe(true)
    expect(sent.indexOf('/b2')).toBeLessThan(sent.indexOf('/a4'))
  })

  it.each([
    ['fair', { fair: (() => 5) as never }, 'fair must return a text, got 5'],
    [
      'a weight of 0',
      { fair: byKey, weight: () => 0 },
      'weight must return a whole number from 1 to 1000, got 0',
    ],
    [
      'a weight of 1.5',
      { fair: byKey, weight: () => 1.5 },
      'weight must return a whole number from 1 to 1000, got 1.5',
    ],
  ])('refuses a call for %s', async (_, options, message) => {
    const { queue } = open(options)
    await expect(queue.run(async () => {})).rejects.toThrow(new InputError('INVALID_PRIORITY', message))
  })

  it('refuses a weight without tenants', () => {
    const make = () => createQueue({ semaphore: one(), weight: () => 1 })
    expect(make).toThrow(new PolicyError('INVALID_OPTION', 'weight needs fair, which names the tenants'))
  })
})
