import { createLimiter, type Limiter, memoryStore, type Policy, slidingLog } from '@sluice/core'
import { createGuard } from '../src/index.js'
import {
  FROM_HOME,
  guardOf,
  pass,
  plain,
  type PlainOptions,
  type PlainRequest,
  PlainResponse,
} from './plain-platform.js'

const HOME = 'ip:192.0.2.1'
let limiter: Limiter

beforeEach(() => {
  limiter = createLimiter({ policies: [perMinute(3)], store: memoryStore({ clock: () => 0 }), name: 'api' })
})

describe('a guard', () => {
  it('lets requests pass up to the limit', async () => {
    const guard = guardOf({ limiter })
    const statuses = []
    for (let i = 0; i < 5; i++) statuses.push((await pass([guard])).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })

  it('decides in the same tick with a memory store and no async callback', () => {
    const options: PlainOptions = {
      key: () => 'k',
      cost: () => 1,
      skip: () => false,
      policies: () => undefined,
    }
    expect(guardOf({ limiter, ...options })({ ...FROM_HOME }, new PlainResponse())).toBeUndefined()
  })

  it('counts each key separately', async () => {
    const guard = guardOf({ limiter, cost: () => 3 })
    await pass([guard])
    expect((await pass([guard], { address: '192.0.2.2' })).status).toBe(200)
  })

  it('charges the cost of the request', async () => {
    await pass([guardOf({ limiter, cost: (req) => Number(req.headers!['x-items']) })], {
      ...FROM_HOME,
      headers: { 'x-items': '2' },
    })
    expect(await left(HOME)).toBe(1)
  })

  it('only reads if the cost is 0', async () => {
    const { headers } = await pass([guardOf({ limiter, cost: () => 0 })])
    expect(headers['X-RateLimit-Remaining']).toBe('3')
  })

  it('neither counts a skipped request nor sets headers on it', async () => {
    const { headers } = await pass([guardOf({ limiter, skip: () => true })])
    expect(headers).toEqual({})
    expect(await left(HOME)).toBe(3)
  })

  it('uses the policies chosen for the request', async () => {
    const tiers: Record<string, Policy[]> = { free: [perMinute(1)], paid: [perMinute(50)] }
    const guard = guardOf({ policies: (req) => tiers[req.headers!['x-tier']!] })
    const { headers } = await pass([guard], { ...FROM_HOME, headers: { 'x-tier': 'paid' } })
    expect(headers['X-RateLimit-Limit']).toBe('50')
  })

  it('blocks a key under every tier that is declared, also one that no request has brought', async () => {
    const tiers = { free: [perMinute(1)], paid: [slidingLog({ limit: 99, window: '1h' })] }
    const guard = guardOf({
      policies: (req) => tiers[req.headers!['x-tier'] as keyof typeof tiers],
      tiers: Object.values(tiers),
      penalty: { block: '1h' },
    })
    const seen: number[] = []
    for (const tier of ['free', 'free', 'paid']) {
      seen.push((await pass([guard], { ...FROM_HOME, headers: { 'x-tier': tier } })).status)
    }
    expect(seen).toEqual([200, 429, 429])
  })

  it("uses the limiter's own policies if the function returns none", async () => {
    const { headers } = await pass([guardOf({ limiter, policies: () => undefined })])
    expect(headers['X-RateLimit-Limit']).toBe('3')
  })

  it('uses limit and window if the function returns no policies', async () => {
    const { headers } = await pass([guardOf({ limit: 7, window: '1m', policies: () => undefined })])
    expect(headers['X-RateLimit-Limit']).toBe('7')
  })

  it('shares usage between guards of one limiter', async () => {
    await pass([guardOf({ limiter, cost: () => 2 })])
    const { headers } = await pass([guardOf({ limiter })])
    expect(headers['X-RateLimit-Remaining']).toBe('0')
  })

  it('writes no headers to a response that has begun and refuses them', () => {
    const setHeader = (res: PlainResponse, name: string, value: string): void => {
      if (res.headersSent) throw new Error('sent')
      plain.setHeader(res, name, value)
    }
    const guard = createGuard({ limiter }, { ...plain, setHeader })
    const begun = Object.assign(new PlainResponse(), { headersSent: true })
    expect(guard({ ...FROM_HOME }, begun)).toBeUndefined()
    expect(begun.headers).toEqual({})
  })

  it('throws on why a header cannot be set while the response has not begun', () => {
    const setHeader = (): void => {
      throw new Error('invalid')
    }
    const guard = createGuard({ limiter }, { ...plain, setHeader })
    expect(() => guard({ ...FROM_HOME }, new PlainResponse())).toThrow('invalid')
  })

  it('changes neither status nor headers of a response that has begun', async () => {
    const guard = guardOf({ limiter, cost: () => 4 })
    const res = Object.assign(new PlainResponse(), { headersSent: true })
    expect(await guard({ ...FROM_HOME }, res)).toEqual({ answer: undefined })
    expect(res).toEqual(Object.assign(new PlainResponse(), { headersSent: true }))
  })
})

describe('an async callback', () => {
  it.each<[string, PlainOptions, number]>([
    ['key', { key: async () => HOME }, 2],
    ['cost', { cost: async () => 3 }, 0],
    ['skip', { skip: async () => true }, 3],
    ['policies', { policies: async () => [perMinute(2)] }, 2],
    ['key of another promise library', { key: () => thenable(HOME) }, 2],
  ])('is awaited: %s', async (_, options, remaining) => {
    await pass([guardOf({ limiter, ...options })])
    expect(await left(HOME)).toBe(remaining)
  })

  it("makes the guard return a native promise, even if it returns another library's", () => {
    const guard = guardOf({ limiter, key: () => thenable(HOME) })
    expect(guard({ ...FROM_HOME }, new PlainResponse())).toBeInstanceOf(Promise)
  })
})

describe('a callback that fails', () => {
  const failure = new Error('no database')
  const fail = () => {
    throw failure
  }
  const reject = () => Promise.reject(failure)

  describe.each(['key', 'cost', 'skip', 'policies'] as const)('%s', (name) => {
    it.each([
      ['throws', fail],
      ['rejects', reject],
    ])('makes the guard reject when it %s', async (_, callback) => {
      await expect(pass([guardOf({ limiter, [name]: callback })])).rejects.toBe(failure)
    })

    it('charges nothing', async () => {
      await pass([guardOf({ limiter, [name]: fail })]).catch(() => undefined)
      expect(await left(HOME)).toBe(3)
    })
  })

  it.each([[undefined], [null], [7], [{}]])('is INVALID_KEY if the key is %p', async (key) => {
    await expect(pass([guardOf({ limiter, key: () => key as never })])).rejects.toMatchObject({
      code: 'INVALID_KEY',
    })
  })

  it.each([[undefined], [null], [NaN], [-1], [1.5], ['3'], [2n], [Infinity], [2 ** 53]])(
    'is INVALID_COST if the cost is %p',
    async (cost) => {
      const guard = guardOf({ limiter, cost: () => cost as never })
      await expect(pass([guard])).rejects.toMatchObject({ code: 'INVALID_COST' })
      expect(await left(HOME)).toBe(3)
    },
  )

  it.each([[undefined], [null], [[]], [{}]])(
    'is INVALID_POLICIES if the only policies are %p',
    async (policies) => {
      const guard = guardOf({ policies: () => policies as never })
      await expect(pass([guard])).rejects.toMatchObject({ code: 'INVALID_POLICIES' })
    },
  )
})

describe('shadow mode', () => {
  it('passes a request that would be denied, without Retry-After', async () => {
    const guard = guardOf({ limit: 1, window: '1m', enforce: false })
    await pass([guard])
    const { status, headers } = await pass([guard])
    expect(status).toBe(200)
    expect(Object.keys(headers)).toEqual(['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset'])
  })
})

describe('two guards on one request', () => {
  it('charge nothing to the second if the first denies', async () => {
    const strict = guardOf({ limit: 1, window: '1m' })
    await pass([strict])
    await pass([strict, guardOf({ limiter })])
    expect(await left(HOME)).toBe(3)
  })
})

describe('a platform', () => {
  it('is asked only for what the key needs', () => {
    const address = jest.spyOn(plain, 'address')
    void guardOf({ limiter, key: () => 'k' })({ ...FROM_HOME }, new PlainResponse())
    expect(address).not.toHaveBeenCalled()
  })

  it('is not asked for an address that the key does not need while a store is waited for', async () => {
    const address = jest.spyOn(plain, 'address').mockClear()
    jest.spyOn(limiter, 'decide').mockReturnValue(limiter.consume('k'))
    await guardOf({ limiter, key: () => 'k' })({ ...FROM_HOME }, new PlainResponse())
    expect(address).not.toHaveBeenCalled()
  })

  it('receives each decision before it takes effect', async () => {
    const order: string[] = []
    const guard = createGuard<PlainRequest, PlainResponse>(
      { limiter, cost: () => 3 },
      {
        ...plain,
        decided: (_, { allowed }) => void order.push(allowed ? 'admitted' : 'denied'),
        setStatus: (_, status) => void order.push(`answered ${status}`),
      },
    )
    for (let i = 0; i < 2; i++) await guard({ ...FROM_HOME }, new PlainResponse())
    expect(order).toEqual(['admitted', 'denied', 'answered 429'])
  })

  it('whose requests repeat may count one several times without a warning', async () => {
    const warned = jest.fn()
    limiter.on('warning', warned)
    const guard = createGuard({ limiter }, { ...plain, repeats: () => true })
    const req = { ...FROM_HOME }
    for (let i = 0; i < 2; i++) await guard(req, new PlainResponse())
    expect(warned).not.toHaveBeenCalled()
    expect(await left(HOME)).toBe(1)
  })
})

function perMinute(limit: number): Policy {
  return slidingLog({ limit, window: '1m' })
}

async function left(key: string): Promise<number> {
  return (await limiter.peek(key)).remaining
}

function thenable(value: string): Promise<string> {
  const promise = Promise.resolve(value)
  return { then: (use: (value: string) => unknown) => void promise.then(use) } as unknown as Promise<string>
}
