import { createLimiter, createSemaphore, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { createGuard, decisionAbout } from '../src/index.js'
import { FROM_HOME, guardOf, pass, plain, type PlainOptions, PlainResponse } from './plain-platform.js'

let tenant: Limiter
let user: Limiter

beforeEach(() => {
  const store = memoryStore({ clock: () => 0 })
  const of = (name: string, limit: number) =>
    createLimiter({ name, store, policies: [slidingLog({ limit, window: '1m' })] })
  tenant = of('tenant', 5)
  user = of('user', 1)
})

describe('limits together', () => {
  it('are decided in the same tick where no store and no callback has to be waited for', () => {
    const guard = guardOf({ limits: [{ limiter: tenant }, { limiter: user }] })
    expect(guard({ ...FROM_HOME }, new PlainResponse())).toBeUndefined()
    expect(guard({ ...FROM_HOME }, new PlainResponse())).not.toBeInstanceOf(Promise)
  })

  it.each([
    ['first', () => [user, tenant]],
    ['last', () => [tenant, user]],
  ])('hand the platform the one that binds after the others, if it counts %s', async (_, limiters) => {
    const decided: string[] = []
    const guard = createGuard(
      { limits: limiters().map((limiter) => ({ limiter })) },
      { ...plain, decided: (_req, { limiter }) => void decided.push(limiter) },
    )
    for (let i = 0; i < 2; i++) {
      const req = { ...FROM_HOME }
      await guard(req, new PlainResponse())
      expect(decisionAbout(req)?.limiter).toBe('user')
      expect(decisionAbout(req, 'tenant')?.remaining).toBe(4)
    }
    expect(decided).toEqual(['tenant', 'user', 'tenant', 'user'])
  })

  it('count one key in two limits once, at the cost of both', async () => {
    const warned = jest.fn()
    tenant.on('warning', warned)
    const { headers } = await pass([guardOf({ limits: [{ limiter: tenant }, { limiter: tenant }] })])
    expect(headers).toMatchObject({ 'X-RateLimit-Remaining': '3' })
    expect(warned).not.toHaveBeenCalled()
  })

  it('let a request of cost 0 pass where a limit is 0', async () => {
    const suspended = { name: 'suspended', limit: 0, window: '1m', cost: () => 0 } as const
    const { status, headers } = await pass([guardOf({ limits: [suspended] })])
    expect([status, headers['X-RateLimit-Limit']]).toEqual([200, '0'])
  })

  it('share the headers with limits that count by themselves', async () => {
    const alone = guardOf({ name: 'alone', limit: 9, window: '1m', headers: 'ietf' })
    const together = guardOf({ limits: [{ limiter: tenant }, { limiter: user }], headers: 'ietf' })
    const { headers } = await pass([alone, together])
    expect(headers['RateLimit']).toBe('"alone";r=8;t=60, "tenant";r=4;t=60, "user";r=0;t=60')
  })

  it('end a request whose caller hung up before it could be identified, and charge nothing', async () => {
    const gone = createGuard(
      { limits: [{ limiter: tenant, key: () => 'acme' }, { limiter: user }] },
      { ...plain, address: () => undefined, socketAddress: () => undefined, hungUp: () => true },
    )
    expect(await gone({}, new PlainResponse())).toMatchObject({ hungUp: true })
    expect((await tenant.peek('acme')).remaining).toBe(5)
  })

  it('read an address before they wait for a key', async () => {
    let isGone = false
    const key = async () => {
      await Promise.resolve()
      isGone = true
      return 'acme'
    }
    const guard = createGuard(
      { limits: [{ limiter: tenant, key }, { limiter: user }] },
      { ...plain, address: (req) => (isGone ? undefined : req.address), socketAddress: () => undefined },
    )
    await guard({ ...FROM_HOME }, new PlainResponse())
    expect((await user.peek('ip:192.0.2.1')).remaining).toBe(0)
  })

  it('warn of a raw IPv6 address in a key of one of them', async () => {
    const codes: string[] = []
    user.on('warning', ({ code }) => void codes.push(code))
    const address = '2001:db8::1'
    const guard = guardOf({ limits: [{ limiter: tenant }, { limiter: user, key: () => address }] })
    await pass([guard], { address, socketAddress: address })
    expect(codes).toEqual(['KEY_RAW_IPV6'])
  })

  it('report a failure of shouldCharge once, and stay charged', async () => {
    const codes: string[] = []
    for (const limiter of [tenant, user]) limiter.on('warning', ({ code }) => void codes.push(code))
    const shouldCharge = async () => Promise.reject(new Error('no status'))
    const guard = guardOf({ limits: [{ limiter: tenant }, { limiter: user }], shouldCharge })
    const { onFinished } = await pass([guard])
    for (const listener of onFinished) listener()
    await new Promise(setImmediate)
    expect(codes).toEqual(['CHARGE_FAILED'])
    expect((await tenant.peek('ip:192.0.2.1')).remaining).toBe(4)
  })
})

describe('limits of a function', () => {
  const store = () => memoryStore({ clock: () => 0 })
  const user: PartOfPlain = { name: 'user', limit: 1, window: '1m' }
  const semaphore = createSemaphore({ limit: 1 })

  type PartOfPlain = Extract<PlainOptions['limits'], readonly unknown[]>[number]

  /** A guard of the list in force, which `put` replaces; `ask` returns status and limit of a request. */
  function following(...first: PartOfPlain[]) {
    let list: readonly PartOfPlain[] = first
    const shared = store()
    const guard = createGuard({ limits: () => list, store: shared }, plain)
    const put = (...next: PartOfPlain[]): void => void (list = next)
    const ask = async () => {
      const { status, headers } = await pass([guard])
      return `${status} of ${headers['X-RateLimit-Limit']}`
    }
    return { guard, put, ask, store: shared }
  }

  it('bring another limit and another window, under which what was consumed counts', async () => {
    const { put, ask } = following(user)
    expect([await ask(), await ask()]).toEqual(['200 of 1', '429 of 1'])
    put({ ...user, limit: 3 })
    expect([await ask(), await ask(), await ask()]).toEqual(['200 of 3', '200 of 3', '429 of 3'])
    put({ ...user, limit: 2 })
    expect(await ask()).toBe('429 of 2')
    put({ ...user, limit: 2, window: '1h' })
    expect(await ask()).toBe('200 of 2')
  })

  it('bring their own where the function of policies chooses none', async () => {
    const policies = () => undefined
    const { put, ask } = following({ ...user, policies })
    put({ ...user, limit: 2, policies })
    expect([await ask(), await ask(), await ask()]).toEqual(['200 of 2', '200 of 2', '429 of 2'])
    put({ name: 'user', policies })
    await expect(ask()).rejects.toMatchObject({ code: 'INVALID_POLICIES' })
  })

  it('go on without a name, in one limiter', async () => {
    const { name: _name, ...unnamed } = user
    const guard = createGuard({ limits: () => [{ ...unnamed, limit: 2 }] }, plain)
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await pass([guard])).status)
    expect([statuses, guard.limiters.length]).toEqual([[200, 200, 429, 429], 1])
  })

  it.each<[string, PartOfPlain[], string]>([
    ['a list with a name twice', [user, { ...user, limit: 5 }], "two limits are named 'user'"],
    [
      'a list with two new ones of a name',
      [
        { ...user, name: 'b' },
        { ...user, name: 'b' },
      ],
      "named 'b'",
    ],
    ['a limit without a window', [{ name: 'user', limit: 5 }], 'limit and window are needed'],
    ['a limit of -1', [{ ...user, limit: -1 }], 'limit must be'],
    ['a semaphore where no response ends', [user, { semaphore }], 'a semaphore needs a response'],
  ])('refuse %s, and keep the limiters', async (_, list, message) => {
    const { guard, put, ask } = following(user)
    put(...list)
    await expect(ask()).rejects.toThrow(message)
    put({ ...user, limit: 2 })
    expect([await ask(), guard.limiters.length]).toEqual(['200 of 2', 1])
  })

  it('make no limiter again for a list that is refused at each request', async () => {
    const shared = store()
    const made = jest.spyOn(shared, 'keyspace')
    let list: readonly PartOfPlain[] = [user]
    const guard = createGuard({ limits: () => list, store: shared }, plain)
    list = [
      { ...user, name: 'new' },
      { ...user, limit: -1 },
    ]
    for (let i = 0; i < 3; i++) await expect(pass([guard])).rejects.toThrow('limit must be')
    const before = made.mock.calls.length
    await expect(pass([guard])).rejects.toThrow('limit must be')
    expect(made.mock.calls.length).toBe(before)
  })

  it('count a limit in the limiter that was made for it beside a given one of its name', async () => {
    const { put, ask } = following(user)
    expect([await ask(), await ask()]).toEqual(['200 of 1', '429 of 1'])
    put({ limiter: createLimiter({ name: 'user', policies: [slidingLog({ limit: 5, window: '1m' })] }) })
    expect(await ask()).toBe('200 of 5')
    put(user)
    expect(await ask()).toBe('429 of 1')
  })

  it('bring tiers, under which a ban is written that no request has had yet', async () => {
    const { guard, put, ask, store } = following(user)
    await ask()
    const hourly = [slidingLog({ limit: 9, window: '1h' })]
    put({ ...user, tiers: [hourly] })
    await ask()
    await guard.limiters[0]!.block('k', '1h')
    const other = createLimiter({ name: 'user', policies: hourly, store })
    expect(await other.consume('k')).toMatchObject({ reason: 'blocked' })
  })

  it('take a limiter with no numbers beside it, as any list', () => {
    expect(() => following({ limiter: tenant, limit: 5, window: '1m' })).toThrow('exclude each other')
  })
})
