import {
  consumeAll,
  createLimiter,
  createSemaphore,
  type Limiter,
  memoryStore,
  type PermitPart,
  type Semaphore,
  slidingLog,
  StoreError,
} from '../../src/index.js'

let perDay: Limiter
let atOnce: Semaphore
beforeEach(() => {
  perDay = createLimiter({
    policies: [slidingLog({ limit: 10, window: '1d' })],
    store: memoryStore({ clock: () => 0 }),
    name: 'per day',
  })
  atOnce = createSemaphore({ limit: 1, name: 'at once' })
})

const call = (cost = 1) =>
  consumeAll([
    { limiter: perDay, key: 'acme', cost },
    { semaphore: atOnce, key: 'acme' },
  ])
const remaining = async () => (await perDay.peek('acme')).remaining

describe('a call on keys and permits', () => {
  it('charges nothing where a permit is refused: 9 of 10 units are left after six calls of which one runs', async () => {
    const calls = [await call(), await call(), await call(), await call(), await call(), await call()]
    expect(calls.map(({ allowed }) => allowed)).toEqual([true, false, false, false, false, false])
    expect(await remaining()).toBe(9)
  })

  it('holds its permits until it releases them', async () => {
    const whole = await call()
    expect([whole.permits.length, atOnce.inUse]).toEqual([1, 1])
    await whole.release()
    await whole.release()
    expect(atOnce.inUse).toBe(0)
    expect((await call()).allowed).toBe(true)
    expect(await remaining()).toBe(8)
  })

  it('releases the permits, and charges nothing, where a key denies', async () => {
    const whole = await call(11)
    expect([whole.allowed, whole.denied?.reason, whole.permits]).toEqual([false, 'cost', []])
    expect([atOnce.inUse, await remaining()]).toEqual([0, 10])
  })

  it('releases the permits that it has where another one is refused', async () => {
    const other = createSemaphore({ limit: 1, name: 'other' })
    await other.acquire('acme')
    const whole = await consumeAll([
      { semaphore: atOnce, key: 'acme' },
      { semaphore: other, key: 'acme' },
      { limiter: perDay, key: 'acme' },
    ])
    expect([whole.allowed, atOnce.inUse, other.inUse, await remaining()]).toEqual([false, 0, 1, 10])
  })

  it('names the semaphore that has refused it, and no wait, as nothing says when a permit is released', async () => {
    await call()
    const { denied, decisions, retryAfterMs } = await call()
    expect(decisions).toEqual([denied])
    expect(denied?.toJSON()).toMatchObject({
      allowed: false,
      reason: 'concurrency',
      limiter: 'at once',
      policy: 'at once',
      key: 'acme',
      limit: 1,
      remaining: 0,
      charged: false,
    })
    expect(retryAfterMs).toBe(0)
    await expect(denied!.settle(3)).resolves.toBe(0)
  })

  it('settles the keys, and has one decision for each of them', async () => {
    const whole = await call(5)
    expect(whole.decisions.map(({ limiter }) => limiter)).toEqual(['per day'])
    expect(await whole.settle([2])).toEqual([-3])
    expect(await remaining()).toBe(8)
  })

  it('takes two permits where a semaphore and key stand in it twice, and may take permits alone', async () => {
    const two = createSemaphore({ limit: 2 })
    const parts = [{ semaphore: two }, { semaphore: two }]
    expect([(await consumeAll(parts)).allowed, two.inUse]).toEqual([true, 2])
    expect((await consumeAll(parts)).allowed).toBe(false)
    expect(two.inUse).toBe(2)
  })

  it('rejects where a semaphore or a limiter fails, and releases what it has', async () => {
    const failing = {
      name: 'failing',
      limitOf: () => 1,
      acquire: () => Promise.reject(new StoreError('STORE_UNAVAILABLE', 'gone')),
    }
    const parts = [
      { semaphore: atOnce, key: 'acme' },
      { semaphore: failing, key: 'acme' },
    ]
    await expect(consumeAll(parts)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await perDay.close()
    await expect(call()).rejects.toMatchObject({ code: 'CLOSED' })
    expect(atOnce.inUse).toBe(0)
  })

  it.each([
    [{ semaphore: 5, key: 'k' }, 'semaphore of a part must be made by createSemaphore(), got 5'],
    [{ semaphore: () => {}, cost: 2 }, "there is no option 'cost' of a part"],
  ])('refuses the part %p before it takes a permit', async (part, message) => {
    const parts = [{ semaphore: atOnce }, part as unknown as PermitPart]
    await expect(consumeAll(parts)).rejects.toThrow(message)
    expect(atOnce.inUse).toBe(0)
  })

  it('refuses a key that is not valid before it takes a permit', async () => {
    const parts = [{ semaphore: atOnce }, { limiter: perDay, key: 'acme', cost: -1 }]
    const asked = consumeAll(parts)
    expect(atOnce.inUse).toBe(0)
    await expect(asked).rejects.toMatchObject({ code: 'INVALID_COST' })
  })
})
