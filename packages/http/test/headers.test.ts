import { calendarWindow } from '@sluice/calendar'
import {
  createLimiter,
  type Decision,
  gcra,
  type LimiterOptions,
  memoryStore,
  type Policy,
  slidingLog,
  tokenBucket,
} from '@sluice/core'
import { type Item, parseList } from 'structured-headers'
import { guardOf, pass, type PlainOptions } from './plain-platform.js'

const WALL_MS = 1_700_000_000_500
let nowUs = 0

beforeEach(() => {
  nowUs = 0
  jest.spyOn(Date, 'now').mockReturnValue(WALL_MS)
})
afterEach(() => jest.restoreAllMocks())

describe('X-RateLimit headers', () => {
  it('show limit, remaining and reset by default', async () => {
    const { headers } = await pass([limited([perMinute(3)])])
    expect(headers).toEqual({
      'X-RateLimit-Limit': '3',
      'X-RateLimit-Remaining': '2',
      'X-RateLimit-Reset': '1700000061',
    })
  })

  it('round the wall time of the reset up', async () => {
    const { headers } = await pass([limited([slidingLog({ limit: 3, window: '499ms' })])])
    expect(headers['X-RateLimit-Reset']).toBe('1700000001')
  })

  it('show the reset from now on request, rounded up', async () => {
    const { headers } = await pass([
      limited([slidingLog({ limit: 3, window: '1200ms' })], { resetAs: 'delta' }),
    ])
    expect(headers['X-RateLimit-Reset']).toBe('2')
  })

  it('show the capacity as the limit, so that remaining never exceeds it', async () => {
    const { headers } = await pass([limited([tokenBucket({ limit: 10, window: '1m', capacity: 50 })])])
    expect(headers).toMatchObject({ 'X-RateLimit-Limit': '50', 'X-RateLimit-Remaining': '49' })
  })

  it('show the binding policy of several', async () => {
    const { headers } = await pass([limited([perMinute(5), slidingLog({ limit: 2, window: '1h' })])])
    expect(headers).toMatchObject({ 'X-RateLimit-Limit': '2', 'X-RateLimit-Remaining': '1' })
  })

  it('are the same on a denial', async () => {
    const guard = limited([perMinute(1)])
    await pass([guard])
    const { headers } = await pass([guard])
    expect(headers).toMatchObject({
      'X-RateLimit-Limit': '1',
      'X-RateLimit-Remaining': '0',
      'X-RateLimit-Reset': '1700000061',
    })
  })

  it('show the smallest remaining of several limiters', async () => {
    const wide = limited([perMinute(9)], {}, { name: 'wide' })
    const narrow = limited([perMinute(4)], {}, { name: 'narrow' })
    for (const guards of [
      [wide, narrow],
      [narrow, wide],
    ]) {
      const { headers } = await pass(guards)
      expect(headers['X-RateLimit-Limit']).toBe('4')
    }
  })

  it('show a denial before a smaller remaining', async () => {
    const empty = limited([perMinute(1)], {}, { name: 'empty' })
    const large = limited([perMinute(9)], { cost: () => 10 }, { name: 'large' })
    const { headers } = await pass([empty, large])
    expect(headers).toMatchObject({ 'X-RateLimit-Limit': '9', 'X-RateLimit-Remaining': '9' })
  })
})

describe('IETF headers', () => {
  it('show quota and window, what is left and until when', async () => {
    const { headers } = await pass([limited([perMinute(100)], { headers: 'ietf' })])
    expect(headers).toEqual({ 'RateLimit-Policy': '"api";q=100;w=60', RateLimit: '"api";r=99;t=60' })
  })

  it('leave out the window of a calendar, and show its end', async () => {
    const policies = [calendarWindow({ limit: 100, every: 'day' })]
    const { headers } = await pass([limited(policies, { headers: ['ietf'] })])
    expect(headers).toEqual({ 'RateLimit-Policy': '"api";q=100', RateLimit: '"api";r=99;t=86400' })
    const older = await pass([limited(policies, { headers: 'draft-6' })])
    expect(older.headers).toMatchObject({ 'RateLimit-Policy': '100', 'RateLimit-Reset': '86400' })
  })

  it('are named after limiter and policy if there are several policies', async () => {
    const policies = [slidingLog({ limit: 5, window: '1s', name: 'burst' }), perMinute(60)]
    const { policy, limit } = await ietf([limited(policies, { headers: 'ietf' })])
    expect(policy.map(nameOf)).toEqual(['api-burst', 'api-60-per-1m'])
    expect(limit.map(nameOf)).toEqual(['api-burst', 'api-60-per-1m'])
  })

  it("show the policy's limit as the quota if the capacity differs", async () => {
    const policies = [gcra({ limit: 10, window: '1s', burst: 20 })]
    const { policy, limit } = await ietf([limited(policies, { headers: 'ietf' })])
    expect(policy[0]![1].get('q')).toBe(10)
    expect(limit[0]![1].get('r')).toBe(19)
  })

  it.each([
    ['1s', 1],
    ['1500ms', undefined],
    ['999ms', undefined],
    ['365d', 31_536_000],
  ] as const)('show a window of %s as w=%p', async (window, w) => {
    const { policy } = await ietf([limited([slidingLog({ limit: 9, window })], { headers: 'ietf' })])
    expect(policy[0]![1].get('w')).toBe(w)
  })

  it('round the time of the reset up', async () => {
    const guard = limited([slidingLog({ limit: 9, window: '1500ms' })], { headers: 'ietf' })
    expect((await ietf([guard])).limit[0]![1].get('t')).toBe(2)
  })

  it('show when a denying policy will pass, and when the others are full', async () => {
    const policies = [slidingLog({ limit: 2, window: '10s', name: 'short' }), perMinute(9)]
    const guard = limited(policies, { headers: 'ietf' })
    await pass([guard])
    nowUs += 4_000_000
    await pass([guard])
    const { limit } = await ietf([guard])
    expect(limit.map(([, parameters]) => parameters.get('t'))).toEqual([6, 60])
  })

  it('omit the time of a policy that never admits the cost', async () => {
    const { limit } = await ietf([limited([perMinute(9)], { headers: 'ietf', cost: () => 10 })])
    expect([...limit[0]![1]]).toEqual([['r', 9]])
  })

  it('list each of several limiters once, oldest first', async () => {
    const first = limited([perMinute(9)], { headers: 'ietf' }, { name: 'first' })
    const second = limited([perMinute(4)], { headers: 'ietf' }, { name: 'second' })
    const { policy, limit } = await ietf([first, second])
    expect(policy.map(nameOf)).toEqual(['first', 'second'])
    expect(limit.map(nameOf)).toEqual(['first', 'second'])
  })

  it('list a limiter that counted under two keys once, with its most restrictive decision', async () => {
    const limiter = createLimiter({ policies: [perMinute(9)], store: clocked(), name: 'api' })
    const byUser = guardOf({ limiter, headers: 'ietf', key: () => 'user:1', cost: () => 5 })
    const byOrder = guardOf({ limiter, headers: 'ietf', key: () => 'order:1' })
    const { limit } = await ietf([byUser, byOrder])
    expect(limit.map(([, parameters]) => parameters.get('r'))).toEqual([4])
  })

  it('distinguish limiters of the same name', async () => {
    const guards = [
      limited([perMinute(9)], { headers: 'ietf' }),
      limited([perMinute(4)], { headers: 'ietf' }),
    ]
    const { policy, limit } = await ietf(guards)
    expect(policy.map(nameOf)).toEqual(['api', 'api-2'])
    expect(limit.map(nameOf)).toEqual(['api', 'api-2'])
  })

  it('escape any printable name so that it can be parsed', async () => {
    const name = String.raw` !"#$%&'()*+,-./09:;<=>?@AZ[\]^_az{|}~`
    const { limit } = await ietf([limited([perMinute(9)], { headers: 'ietf' }, { name })])
    expect(nameOf(limit[0]!)).toBe(name)
  })

  it('never contain an integer that structured fields do not allow', async () => {
    const policies = [gcra({ limit: 2 ** 52, window: '1ms', burst: 2 ** 40 })]
    const { policy } = await ietf([limited(policies, { headers: 'ietf' })])
    expect(policy[0]![1].get('q')).toBe(999_999_999_999_999)
  })
})

describe('the option headers', () => {
  it('sends both formats', async () => {
    const { headers } = await pass([limited([perMinute(3)], { headers: ['x-ratelimit', 'ietf'] })])
    expect(Object.keys(headers)).toEqual([
      'X-RateLimit-Limit',
      'X-RateLimit-Remaining',
      'X-RateLimit-Reset',
      'RateLimit-Policy',
      'RateLimit',
    ])
  })

  it('sends none when false', async () => {
    const { headers } = await pass([limited([perMinute(3)], { headers: false })])
    expect(headers).toEqual({})
  })

  it('hides a limiter beside another one with headers', async () => {
    const unseen = limited([perMinute(3)], { headers: false }, { name: 'unseen' })
    const seen = limited([perMinute(9)], { headers: ['x-ratelimit', 'ietf'] }, { name: 'seen' })
    const { headers } = await pass([unseen, seen])
    expect(headers).toMatchObject({ 'X-RateLimit-Limit': '9', RateLimit: '"seen";r=8;t=60' })
  })

  it('still sends Retry-After on a denial when false', async () => {
    const guard = limited([perMinute(1)], { headers: false })
    await pass([guard])
    const { headers } = await pass([guard])
    expect(headers).toMatchObject({ 'Retry-After': '60' })
  })
})

describe('Retry-After', () => {
  it.each([
    ['60s', 60],
    ['1200ms', 2],
    ['1ms', 1],
  ] as const)('rounds a wait of %s up to %i seconds', async (window, seconds) => {
    const guard = limited([slidingLog({ limit: 1, window })])
    await pass([guard])
    const { headers } = await pass([guard])
    expect(headers['Retry-After']).toBe(String(seconds))
  })

  it('is never before the time of a denying policy', async () => {
    const policies = [slidingLog({ limit: 1, window: '2500ms' }), slidingLog({ limit: 1, window: '700ms' })]
    const guard = limited(policies, { headers: 'ietf' })
    await pass([guard])
    const { headers } = await pass([guard])
    const times = items(headers['RateLimit']).map(([, parameters]) => Number(parameters.get('t')))
    expect(Number(headers['Retry-After'])).toBe(Math.max(...times))
  })

  it('is never 0, which clients read as at once', async () => {
    const limiter = createLimiter({ name: 'api', store: clocked(), policies: [perMinute(1)] })
    const decision = Object.defineProperties(limiter.decide('k') as Decision, {
      allowed: { value: false },
      retryAfterMs: { value: 0 },
    })
    jest.spyOn(limiter, 'decide').mockReturnValue(decision)
    const { headers } = await pass([guardOf({ limiter })])
    expect(headers['Retry-After']).toBe('1')
  })

  it('is omitted if no wait helps', async () => {
    const { headers } = await pass([limited([perMinute(1)], { cost: () => 2 })])
    expect(headers).not.toHaveProperty('Retry-After')
  })
})

function perMinute(limit: number): Policy {
  return slidingLog({ limit, window: '1m' })
}

function clocked() {
  return memoryStore({ clock: () => nowUs })
}

function limited(
  policies: readonly Policy[],
  options: PlainOptions = {},
  limiter: Partial<LimiterOptions> = {},
) {
  return guardOf({
    ...options,
    limiter: createLimiter({ name: 'api', store: clocked(), policies, ...limiter }),
  })
}

async function ietf(guards: Parameters<typeof pass>[0]) {
  const { headers } = await pass(guards)
  return { policy: items(headers['RateLimit-Policy']), limit: items(headers['RateLimit']) }
}

function items(value: string | undefined): Item[] {
  return parseList(value!) as Item[]
}

function nameOf([name]: Item): unknown {
  return name
}

describe('a key that an override exempts', () => {
  const exempted = async (name: string, limit: number) => {
    const limiter = createLimiter({ name, policies: [slidingLog({ limit, window: '1m' })] })
    await limiter.override('ip:192.0.2.1', { exempt: true, until: '1h', reason: 'a crawler', by: 'ops' })
    return limiter
  }

  it.each(['x-ratelimit', 'ietf', 'draft-6', 'draft-7'] as const)('has no headers: %s', async (headers) => {
    const limiter = await exempted('exempt', 1)
    for (let i = 0; i < 3; i++) {
      const { status, headers: sent } = await pass([guardOf({ limiter, headers })], { address: '192.0.2.1' })
      expect([status, sent]).toEqual([200, {}])
    }
    const { headers: others } = await pass([guardOf({ limiter, headers })], { address: '192.0.2.2' })
    expect(Object.keys(others)).not.toEqual([])
  })

  it('leaves the headers to the limits that count it', async () => {
    const limiters = [
      await exempted('exempt', 1),
      createLimiter({ policies: [slidingLog({ limit: 5, window: '1m' })] }),
    ]
    const { headers } = await pass(
      limiters.map((limiter) => guardOf({ limiter, headers: ['x-ratelimit', 'ietf'] })),
      { address: '192.0.2.1' },
    )
    expect(headers).toMatchObject({ 'X-RateLimit-Limit': '5', 'RateLimit-Policy': '"default";q=5;w=60' })
  })
})
