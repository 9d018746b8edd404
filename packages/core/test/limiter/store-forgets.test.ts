import '@sluice/calendar'
import { expectWarnings } from '@sluice/harness/warnings'
import { keyspaceOver, type Store } from '../../src/stores/authoring.js'
import { calendarWindow, createLimiter, fixedWindow, gcra, memoryStore } from '../../src/index.js'

const month = calendarWindow({ limit: 5, every: 'month' })
const second = gcra({ limit: 5, window: '1s' })

describe('a budget in a store that forgets', () => {
  it('is warned of once, when the limiter is made', async () => {
    const written = expectWarnings(['STORE_FORGETS'])
    const limiter = createLimiter({
      name: 'budget',
      policies: [month],
      tiers: [[month, second]],
      store: memoryStore(),
    })
    await limiter.consume('a')
    await limiter.consume('a', { policies: [calendarWindow({ limit: 5, every: 'year' })] })
    expect(written).toEqual([
      {
        code: 'STORE_FORGETS',
        message: expect.stringMatching(/^limiter 'budget': .*append-only file.*logged: true/),
      },
    ])
  })

  it('is warned of with the first call that brings it', async () => {
    const limiter = createLimiter({ policies: [second] })
    await limiter.consume('a')
    const written = expectWarnings(['STORE_FORGETS'])
    await limiter.consume('a', { policies: [calendarWindow({ limit: 5, every: 'week' })] })
    expect(written).toHaveLength(1)
  })

  it('is none where it lasts a day, or has no calendar', async () => {
    const written = expectWarnings([])
    const day = calendarWindow({ limit: 5, every: 'day', timeZone: 'Asia/Tokyo' })
    await createLimiter({ policies: [day, fixedWindow({ limit: 9, window: '30d' })] }).consume('a')
    expect(written).toEqual([])
  })

  it('is none in a store that keeps its state, or does not say that it forgets', async () => {
    const written = expectWarnings([])
    const store: Store = {
      local: true,
      keyspace: (name, policies, report) =>
        keyspaceOver((_id, change) => change(undefined, 0).result, name, policies, report),
      now: () => 0,
      close() {},
    }
    createLimiter({ name: 'budget', policies: [month], store })
    createLimiter({ name: 'budget', policies: [month], store: { ...store, forgets: false } })
    await Promise.resolve()
    expect(written).toEqual([])
  })
})
