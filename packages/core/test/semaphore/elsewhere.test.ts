import { AsyncLocalStorage } from 'node:async_hooks'
import { createSemaphore, type SemaphoreOptions, StoreError } from '../../src/index.js'
import type { TicketState } from '../../src/stores/permits.js'
import { outcome, PermitsElsewhere } from './permits-elsewhere.js'
import { expectWarnings } from '@sluice/harness/warnings'

/** Timers and the clock of this file are Jest's: nothing sleeps. */
let store: PermitsElsewhere
beforeEach(() => {
  jest.useFakeTimers()
  store = new PermitsElsewhere()
})
afterEach(() => jest.useRealTimers())

const open = (options: Partial<SemaphoreOptions> = {}) =>
  createSemaphore({ name: 'jobs', limit: 1, store, ...options })
const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)

/** From now on answers are on their way until the returned function sends them off, all at once. */
function holdAnswers(state: TicketState): () => Promise<void> {
  const replies: (() => void)[] = []
  store.answer = (_, tickets) =>
    new Promise((resolve) => replies.push(() => resolve(tickets.map(() => state))))
  return async () => {
    for (const reply of replies.splice(0)) reply()
    await pass(0)
  }
}

describe('a permit that is held stays taken', () => {
  it('where a poll reports it before the answer to the call that took it', async () => {
    const semaphore = open()
    const reply = holdAnswers('held')
    const call = outcome(semaphore.acquire())
    semaphore.resize(2)
    await reply()
    expect(call.permit!.allowed).toBe(true)
    expect(store.calls).toEqual(['wait 1', 'poll 1'])
  })

  it('where a poll reports it and the answer to the call that took it is late', async () => {
    const semaphore = open()
    holdAnswers('held')
    const call = outcome(semaphore.acquire('', { maxWait: 0 }))
    store.answer = () => ['held']
    semaphore.resize(2)
    await pass(60)
    expect(call.permit!.allowed).toBe(true)
    expect(store.calls).toEqual(['take 1', 'poll 1'])
  })

  it('where two polls overlap after the store has lost its data, of which one queues the ticket again', async () => {
    const semaphore = open()
    store.answer = () => ['waiting']
    const call = outcome(semaphore.acquire())
    await pass(0)
    const reply = holdAnswers('unknown')
    store.announce(1)
    semaphore.resize(2)
    const granted = holdAnswers('held')
    await reply()
    await granted()
    expect(call.permit!.allowed).toBe(true)
    expect(store.calls).toEqual(['wait 1', 'poll 1', 'poll 1', 'wait 1'])
  })
})

it('a permit is not renewed after its release where the answer to the call that took it comes last', async () => {
  const semaphore = open()
  const reply = holdAnswers('held')
  const call = outcome(semaphore.acquire())
  store.answer = () => ['held']
  semaphore.resize(2)
  await pass(0)
  await call.permit!.release()
  await reply()
  await pass(60_000)
  expect(store.calls).toEqual(['wait 1', 'poll 1', 'release 1'])
})

describe('after close', () => {
  it('permits are renewed and releases repeated, also when the store was away for a while', async () => {
    const semaphore = open({ limit: 2, lease: '3s' })
    const first = await semaphore.acquire()
    await semaphore.acquire('another')
    await semaphore.close()
    store.fail()
    await first.release()
    await pass(2000)
    store.answerAll('held')
    store.calls.length = 0
    await pass(1000)
    expect(store.calls).toContain('release 1')
    expect(store.calls).toContain('renew 2')
  })

  it('of the store nothing is renewed or repeated any more', async () => {
    const semaphore = open({ limit: 2 })
    const first = await semaphore.acquire()
    await semaphore.acquire()
    store.fail('CLOSED')
    await first.release()
    await pass(1000)
    store.calls.length = 0
    await pass(60_000)
    expect([store.calls.length, jest.getTimerCount()]).toEqual([0, 0])
  })
})

it('an onLost that throws holds up neither the other permits nor the releases of its key', async () => {
  const lost: string[] = []
  const semaphore = open({
    limit: 4,
    lease: '1m',
    onLost: (key) => {
      lost.push(key)
      throw new Error('from onLost')
    },
  })
  const warned = expectWarnings(['LISTENER_FAILED'])
  const permits = await Promise.all([1, 2, 3].map(() => semaphore.acquire()))
  store.fail()
  await permits[0]!.release()
  store.answerAll('unknown')
  store.calls.length = 0
  await pass(500)
  expect(lost).toEqual(['', ''])
  expect(store.calls).toEqual(['renew 2,3', 'release 1'])
  const message = "semaphore 'jobs': a listener of 'lost' threw: Error: from onLost"
  expect(warned).toEqual([{ code: 'LISTENER_FAILED', message }])
})

it('the loss of a permit is reported in the context of the call that got it', async () => {
  const als = new AsyncLocalStorage<string>()
  const lost: unknown[] = []
  const semaphore = open({ limit: 4, lease: '1m', onLost: (key) => lost.push([key, als.getStore()]) })
  await Promise.all(['a', 'b', 'c'].map((key) => als.run(key, () => semaphore.acquire(key))))
  store.answerAll('unknown')
  await pass(500)
  expect(lost).toEqual([
    ['a', 'a'],
    ['b', 'b'],
    ['c', 'c'],
  ])
})

describe('a call that ends without a permit', () => {
  const never = () => new Promise<never>(() => {})

  it('is rejected where the store had not answered it, also before the deadline of the store', async () => {
    store.answer = never
    const call = outcome(open({ deadline: '300ms' }).acquire('', { maxWait: 100 }))
    await pass(100)
    expect(call.error).toMatchObject({ name: 'StoreError', code: 'STORE_TIMEOUT' })
  })

  it('is rejected where the store answered only the calls of others', async () => {
    const semaphore = open({ limit: 2 })
    store.answer = (_, tickets) => {
      if (tickets.includes(1)) throw new StoreError('STORE_OOM', 'as the test says')
      return ['held']
    }
    const call = outcome(semaphore.acquire('', { maxWait: 350 }))
    await pass(340)
    expect((await semaphore.acquire('another')).allowed).toBe(true)
    await pass(10)
    expect(call.error).toMatchObject({ name: 'StoreError', code: 'STORE_OOM' })
  })

  it('is rejected with the latest failure of its own', async () => {
    const semaphore = open()
    store.fail('STORE_OOM')
    const calls = [50, 150].map((maxWait) => outcome(semaphore.acquire('', { maxWait })))
    await pass(50)
    store.fail('STORE_READONLY')
    await pass(100)
    expect(calls.map(({ error }) => (error as StoreError).code)).toEqual(['STORE_OOM', 'STORE_READONLY'])
  })

  it('is denied where the store had answered it, although a later call failed', async () => {
    const semaphore = open()
    store.answerAll('waiting')
    const call = outcome(semaphore.acquire('', { maxWait: 300 }))
    await pass(50)
    store.answer = never
    await pass(250)
    expect(call.permit).toMatchObject({ allowed: false, waitMs: 300 })
  })

  it('is denied where the store answered a poll for it, although its first call had failed', async () => {
    const semaphore = open()
    store.fail()
    const call = outcome(semaphore.acquire('', { maxWait: 350 }))
    await pass(50)
    store.answerAll('waiting')
    await pass(200)
    store.fail()
    await pass(100)
    expect(call.permit).toMatchObject({ allowed: false, waitMs: 350 })
  })
})

describe('after an outage', () => {
  const released = () => store.calls.filter((call) => call.startsWith('release'))

  it('tickets that the store never saw are not released', async () => {
    const semaphore = open()
    await semaphore.acquire()
    store.fail()
    for (let i = 0; i < 3; i++) outcome(semaphore.acquire('', { maxWait: 250 }))
    await pass(300)
    store.answerAll('held')
    await pass(1000)
    expect(released()).toEqual([])
  })

  it('a ticket that the store may have seen is released, although a later call was not sent', async () => {
    const semaphore = open()
    store.answer = () => new Promise(() => {})
    outcome(semaphore.acquire('', { maxWait: 200 }))
    await pass(60)
    store.answer = (step) => {
      if (step === 'wait') throw new StoreError('STORE_OOM', 'as the test says')
      return ['unknown']
    }
    await pass(140)
    expect(released()).toEqual(['release 1'])
  })
})
