import { createLimiter, fixedWindow, gcra, memoryStore, slidingLog } from '@sluice/core'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { usageHandler } from '../src/index.js'

const schema = JSON.parse(readFileSync(join(__dirname, '../usage.schema.json'), 'utf8')) as object
const isUsage = new Ajv2020({ strict: false }).compile(schema)
const request = new Request('http://localhost/usage')

describe('usageHandler without a framework', () => {
  it('answers as its schema says, also of a limit of 0, which never passes', async () => {
    const store = memoryStore()
    const policies = [gcra({ limit: 3, window: '1s' }), fixedWindow({ limit: 5, window: '1d' })]
    const limits = [
      { limiter: createLimiter({ name: 'several', policies, store }) },
      { name: 'none', policies: [slidingLog({ limit: 0, window: '1m' })], store },
    ]
    const handler = usageHandler({ limits, key: () => 'k', plan: () => 'pro' })
    const usage: unknown = await (await handler(request)).json()
    expect([isUsage(usage), isUsage.errors]).toEqual([true, null])
    expect(usage).toMatchObject({
      plan: 'pro',
      limits: [{ limiter: 'several' }, { policies: [{ retryAfterMs: null }] }],
    })
    expect(isUsage({ limits: [{ limiter: 'x', view: 'store', policies: [] }] })).toBe(false)
  })

  it('asks the store once for ten thousand requests of a second', async () => {
    jest.useFakeTimers()
    const limiter = createLimiter({ name: 'api', policies: [fixedWindow({ limit: 5, window: '1d' })] })
    const peek = jest.spyOn(limiter, 'peek')
    const handler = usageHandler({ limiter, key: () => 'k' })
    for (let i = 0; i < 10; i++) {
      await Promise.all(Array.from({ length: 1000 }, () => handler(request)))
      jest.advanceTimersByTime(99)
    }
    expect(peek).toHaveBeenCalledTimes(1)
    jest.advanceTimersByTime(10)
    await handler(request)
    expect(peek).toHaveBeenCalledTimes(2)
    jest.useRealTimers()
  })
})
