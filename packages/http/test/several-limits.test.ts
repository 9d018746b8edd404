import { createLimiter, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { createGuard, decisionAbout } from '../src/index.js'
import { FROM_HOME, guardOf, pass, plain, PlainResponse } from './plain-platform.js'

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
