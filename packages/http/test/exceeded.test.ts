import { createLimiter, gcra, type Limiter, slidingLog } from '@sluice/core'
import { guardOf, pass } from './plain-platform.js'
import { expectWarnings } from '@sluice/harness/warnings'

const MINUTE = 60_000
let limiter: Limiter
let exceeded: string[]

beforeEach(() => {
  jest.useFakeTimers()
  limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
  exceeded = []
})

afterEach(async () => {
  await limiter.close()
  jest.useRealTimers()
})

describe('onExceeded', () => {
  it('is called with the first denial of a key, before the answer, and not with the next', async () => {
    const guard = guardOf({
      limiter,
      onExceeded: (_req, res, { key, allowed }) => void exceeded.push(`${key} ${allowed} ${res.status}`),
    })
    const statuses = []
    for (let i = 0; i < 5; i++) statuses.push((await pass([guard])).status)
    expect(statuses).toEqual([200, 200, 429, 429, 429])
    expect(exceeded).toEqual(['ip:192.0.2.1 false 200'])
  })

  it('is called for each key', async () => {
    await use(['ann', 'bob', 'ann', 'bob', 'ann', 'bob', 'ann'])
    expect(exceeded).toEqual(['ann', 'bob'])
  })

  it('is called again after the time of a full allowance, counted from the last denial', async () => {
    await use(['ann', 'ann', 'ann'])
    jest.advanceTimersByTime(MINUTE)
    await use(['ann', 'ann', 'ann'])
    expect(exceeded).toEqual(['ann', 'ann'])
  })

  it('is called once a window for a key that is over its limit all the time', async () => {
    for (let second = 0; second < 300; second++) {
      await use(['ann'])
      jest.advanceTimersByTime(1000)
    }
    expect(exceeded).toHaveLength(5)
  })

  it('is called once a window for a key that is allowed now and then, and denied between', async () => {
    limiter = createLimiter({ policies: [gcra({ limit: 60, window: '1m', burst: 1 })] })
    for (let call = 0; call < 1500; call++) {
      await use(['ann'])
      jest.advanceTimersByTime(100)
    }
    expect(exceeded).toHaveLength(3)
  })

  it('is called once for a key whose limit is 0, and again after a window without a call', async () => {
    limiter = createLimiter({ policies: [slidingLog({ limit: 0, window: '1m' })] })
    for (let second = 0; second < 100; second++) {
      await use(['ann'])
      jest.advanceTimersByTime(1000)
    }
    expect(exceeded).toHaveLength(1)
    jest.advanceTimersByTime(MINUTE)
    await use(['ann', 'ann'])
    expect(exceeded).toHaveLength(2)
  })

  it('is shared by guards with one limiter', async () => {
    expectWarnings(['COUNTED_TWICE'])
    for (let i = 0; i < 4; i++) await pass([guardFor('ann'), guardFor('ann')])
    expect(exceeded).toEqual(['ann'])
  })

  it.each<[string, () => Promise<unknown>, object]>([
    ['in shadow mode', async () => undefined, { enforce: false }],
    ['for a cost that never fits', async () => undefined, { cost: () => 3 }],
    ['for a blocked key', () => limiter.block('ann', '1m'), {}],
  ])('is not called %s', async (_, prepare, { enforce, ...options }: { enforce?: boolean }) => {
    await prepare()
    const counted = enforce === undefined ? { limiter } : { limit: 2, window: '1m', enforce }
    const onExceeded = () => void exceeded.push('ann')
    const guard = guardOf({ ...counted, key: () => 'ann', ...options, onExceeded })
    for (let i = 0; i < 3; i++) await pass([guard])
    expect(exceeded).toEqual([])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no mail')
      },
    ],
    ['rejects', () => Promise.reject(new Error('no mail'))],
  ])('does not affect the answer if it %s, and that is reported', async (_, onExceeded) => {
    const warned = jest.fn()
    limiter.on('warning', warned)
    const guard = guardOf({ limiter, onExceeded })
    for (let i = 0; i < 2; i++) await pass([guard])
    expect((await pass([guard])).status).toBe(429)
    expect(warned.mock.calls).toEqual([
      [
        {
          type: 'warning',
          limiter: 'default',
          code: 'EXCEEDED_FAILED',
          message: 'onExceeded failed: Error: no mail',
        },
      ],
    ])
  })

  it('remembers 10,000 keys of a limiter, those that were denied last', async () => {
    for (let i = 0; i < 10_001; i++) await use([`k${i}`, `k${i}`, `k${i}`])
    exceeded = []
    await use(['k10000', 'k1', 'k0'])
    expect(exceeded).toEqual(['k0'])
  })
})

async function use(keys: readonly string[]): Promise<void> {
  for (const key of keys) await pass([guardFor(key)])
}

function guardFor(key: string) {
  return guardOf({
    limiter,
    key: () => key,
    onExceeded: (_req, _res, decision) => void exceeded.push(decision.key),
  })
}
