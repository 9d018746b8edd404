import { createSemaphore, type SemaphoreOptions } from '../../src/index.js'
import type { TicketState } from '../../src/stores/permits.js'
import { outcome, PermitsElsewhere } from './permits-elsewhere.js'

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
