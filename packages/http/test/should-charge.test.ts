import { createLimiter, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { guardOf, pass, type PlainOptions, type PlainResponse } from './plain-platform.js'

let limiter: Limiter
let warnings: string[]

beforeEach(() => {
  const policies = [slidingLog({ limit: 5, window: '1m' })]
  limiter = createLimiter({ policies, store: memoryStore({ clock: () => 0 }), name: 'api' })
  warnings = []
  limiter.on('warning', ({ code }) => void warnings.push(code))
})

describe('shouldCharge', () => {
  it('leaves the request charged while it is handled', async () => {
    await pass([guard({ shouldCharge: () => false })])
    expect(await left()).toBe(4)
  })

  it('gives everything back if it returns false', async () => {
    await finish(await pass([guard({ cost: () => 3, shouldCharge: () => false })]))
    expect(await left()).toBe(5)
  })

  it('keeps the charge if it returns true', async () => {
    await finish(await pass([guard({ shouldCharge: () => true })]))
    expect(await left()).toBe(4)
  })

  it.each([[undefined], [0], [null], ['']])(
    'keeps the charge if it returns %p, which is not false',
    async (value) => {
      await finish(await pass([guard({ shouldCharge: () => value as never })]))
      expect(await left()).toBe(4)
    },
  )

  it('gets the response as it was sent', async () => {
    const res = await pass([guard({ shouldCharge: (_req, res) => res.status !== 304 })])
    res.status = 304
    await finish(res)
    expect(await left()).toBe(5)
  })

  it('may be async', async () => {
    await finish(await pass([guard({ shouldCharge: async () => false })]))
    expect(await left()).toBe(5)
  })

  it.each<[string, () => boolean | Promise<boolean>]>([
    ['throws', () => fail()],
    ['rejects', async () => fail()],
  ])('keeps the charge and is reported once when it %s', async (_, shouldCharge) => {
    const failing = guard({ shouldCharge })
    for (let i = 0; i < 2; i++) await finish(await pass([failing]))
    expect(await left()).toBe(3)
    expect(warnings).toEqual(['CHARGE_FAILED'])
  })

  it('is not called for a denial', async () => {
    const shouldCharge = jest.fn(() => false)
    const res = await pass([guard({ cost: () => 6, shouldCharge })])
    await finish(res)
    expect(shouldCharge).not.toHaveBeenCalled()
  })

  it('gives back only the charge of its own limiter', async () => {
    const other = createLimiter({ policies: [slidingLog({ limit: 5, window: '1m' })] })
    await finish(
      await pass([
        guard({ shouldCharge: () => false }),
        guardOf({ limiter: other, shouldCharge: () => true }),
      ]),
    )
    expect(await left()).toBe(5)
    expect((await other.peek('ip:192.0.2.1')).remaining).toBe(4)
  })
})

function guard(options: PlainOptions) {
  return guardOf({ limiter, ...options })
}

/** Sends the response, and waits until its listeners have run. */
async function finish(res: PlainResponse): Promise<void> {
  for (const listener of res.onFinished) listener()
  await new Promise((resolve) => setImmediate(resolve))
}

async function left(): Promise<number> {
  return (await limiter.peek('ip:192.0.2.1')).remaining
}

function fail(): never {
  throw new Error('no status')
}
