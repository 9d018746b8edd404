import assert from 'node:assert/strict'
import '@sluice/calendar'
import type { Policy, PolicyFactory } from '@sluice/core'
import { algorithms } from '@sluice/core/store'
import type { Pair } from './copy.js'

type Case = (pair: Pair) => Promise<void>

const DAY = { window: '1d' } as const

/** Policies of one copy in a limiter of the other, and errors of one that the other meets. */
export const limiters: Readonly<Record<string, Case>> = {
  async 'each algorithm decides'([made, used]) {
    for (const name of Object.keys(algorithms) as (keyof typeof algorithms)[]) {
      // As a prototype: an algorithm reads the options that it has, of a window or of a calendar.
      const algorithm = made.core[name] as PolicyFactory<object>
      const options = Object.create({ limit: 2, ...DAY, every: 'day' }) as object
      const limiter = used.core.createLimiter({ policies: [algorithm(options)] })
      assert.equal(await admitted(4, () => limiter.consume('caller')), 2, name)
      await limiter.refund('caller')
      assert.equal(await admitted(2, () => limiter.consume('caller')), 1, `${name} after a refund`)
      await limiter.close()
    }
  },
  async 'a tier of a call'([made, used]) {
    const limiter = used.core.createLimiter({ policies: [used.core.gcra({ limit: 1, ...DAY })] })
    const policies = [made.core.gcra({ limit: 3, ...DAY })]
    assert.equal(await admitted(5, () => limiter.consume('caller', { policies })), 3)
    await limiter.close()
  },
  async 'equal default names are made distinct'([made, used]) {
    const mixed: readonly Policy[] = [
      used.core.gcra({ limit: 2, ...DAY }),
      made.core.slidingLog({ limit: 2, ...DAY }),
    ]
    const limiter = used.core.createLimiter({ policies: mixed })
    const { policies } = await limiter.consume('caller')
    assert.deepEqual(
      policies.map(({ name }) => name),
      ['2-per-1d-gcra', '2-per-1d-sliding-log'],
    )
    await limiter.close()
  },
  async 'errors are instances of the classes of either'([made, used]) {
    const limiter = made.core.createLimiter({ policies: [made.core.gcra({ limit: 2, ...DAY })] })
    const input = await limiter.consume('caller', { cost: -1 }).catch((error: unknown) => error)
    await limiter.close()
    const closed = await limiter.consume('caller').catch((error: unknown) => error)
    const { SluiceError, InputError, PolicyError, StoreError } = used.core
    assert.deepEqual(
      [SluiceError, InputError, PolicyError, StoreError].map((kind) => [
        input instanceof kind,
        closed instanceof kind,
      ]),
      [
        [true, true],
        [true, false],
        [false, false],
        [false, true],
      ],
    )
  },
}

/** An object that was made under another contract is refused where it is handed over. */
export const contracts: Readonly<Record<string, Case>> = {
  'policies of another contract': ([made, used]) =>
    refused(() => used.core.createLimiter({ policies: [made.core.gcra({ limit: 2, ...DAY })] })),
  'a store of another contract in a limiter': async ([made, used]) => {
    const policies = [used.core.gcra({ limit: 2, ...DAY })]
    await refused(() => used.core.createLimiter({ name: 'mixed', policies, store: made.core.memoryStore() }))
  },
  'a store of another contract in a semaphore': ([made, used]) =>
    refused(() => used.core.createSemaphore({ name: 'mixed', limit: 2, store: made.core.memoryStore() })),
  'a limiter of another contract in an adapter': async ([made, used]) => {
    const limiter = made.core.createLimiter({ policies: [made.core.gcra({ limit: 2, ...DAY })] })
    for (const { rateLimit } of [used.express, used.koa, used.hono]) {
      await refused(() => rateLimit({ limiter, key: () => 'caller' }))
    }
  },
}

/** Asserts that something is refused because its copy of core is of another version. */
async function refused(make: () => unknown): Promise<void> {
  try {
    make()
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'VERSION_MISMATCH', String(error))
    return
  }
  assert.fail('it was taken')
}

/** How many of so many calls were admitted. */
async function admitted(calls: number, consume: () => Promise<{ allowed: boolean }>): Promise<number> {
  let count = 0
  for (let i = 0; i < calls; i++) if ((await consume()).allowed) count++
  return count
}
