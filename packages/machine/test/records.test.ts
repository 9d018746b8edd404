import { createLimiter, gcra, type Limiter, type Store } from '@sluice/core'
import { expectWarnings } from '@sluice/harness/warnings'
import { Meeting } from './meeting.js'

const WHO = { reason: 'a campaign', by: 'ops' }
const policies = [gcra({ limit: 10, window: '1d' })]

let meeting: Meeting
beforeEach(() => void (meeting = new Meeting()))
afterEach(() => meeting.end())

const on = (store: Store) =>
  createLimiter({ name: 'api', policies, store, deadline: '5s', onStoreError: 'throw' })
const nextChange = (limiter: Limiter) =>
  new Promise<string>(
    (resolve) => void limiter.on('override', ({ change, key }) => resolve(`${change} ${key}`)),
  )

describe('an override on a machine', () => {
  it('is in force in the process that serves and in one that reaches it, whichever writes', async () => {
    const [server, client] = (await meeting.pair()).map(on) as [Limiter, Limiter]
    await Promise.all([server.consume('a'), client.consume('a')])
    for (const [writer, other] of [
      [server, client],
      [client, server],
    ] as const) {
      const learned = nextChange(other)
      await writer.override('ключ', { limit: 50, until: '1h', ...WHO })
      expect((await writer.peek('ключ')).limit).toBe(50)
      expect(await learned).toBe('set ключ')
      expect((await other.peek('ключ')).limit).toBe(50)
      expect(await other.overrides()).toMatchObject([{ key: 'ключ', ...WHO, limits: { '10-per-1d': 50 } }])
      const removed = nextChange(other)
      await writer.removeOverride('ключ')
      expect(await removed).toBe('removed ключ')
    }
  })

  it('is one of ten thousand, which come in one reply, and the next is refused', async () => {
    const [server, client] = (await meeting.pair()).map(on) as [Limiter, Limiter]
    for (let i = 0; i < 10_000; i++) await server.override(`k${i}`, { factor: 2, until: '1h', ...WHO })
    expect(await client.overrides()).toHaveLength(10_000) // a first call waits for a second at most
    expect((await client.peek('k9999')).limit).toBe(20)
    const next = client.override('next', { factor: 2, until: '1h', ...WHO })
    await expect(next).rejects.toMatchObject({ code: 'TOO_MANY_OVERRIDES' })
  })

  it('ends with the server, as all of its state does', async () => {
    expectWarnings([], { perhaps: ['STORE_DEGRADED', 'STORE_RECOVERED'] })
    const [server, client] = await meeting.pair()
    const limiter = on(client)
    await limiter.override('a', { limit: 50, until: '1h', ...WHO })
    const removed = nextChange(limiter)
    await server.close()
    await meeting.open({ serve: true }).ready()
    expect(await removed).toBe('removed a')
    expect((await limiter.peek('a')).limit).toBe(10)
  })
})
