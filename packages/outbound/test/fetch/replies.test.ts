import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import { fetch as undiciFetch } from 'undici'
import { limitFetch } from '../../src/index.js'

type Fetch = typeof globalThis.fetch
type Answer = Parameters<typeof startOtherParty>[0]

let other: OtherParty
afterEach(() => other.close())

/** A fetch with a semaphore of one permit. */
async function open(answer: Answer, fetch: Fetch = globalThis.fetch) {
  other = await startOtherParty(answer)
  const limiter = createLimiter({ policies: [gcra({ limit: 1000, window: '1s' })] })
  const semaphore = createSemaphore({ limit: 1 })
  const isFree = async () => (await semaphore.acquire(other.origin, { maxWait: 0 })).allowed
  return { limited: limitFetch(fetch, { limiter, semaphore }), isFree }
}

describe('with a semaphore', () => {
  it.each([
    [999, 'Request denied'],
    [200, 'Tr\u00e8s bien'],
  ])('a reply with the status %d and the phrase %j reaches the caller as it is', async (status, phrase) => {
    const { limited, isFree } = await open((_, res) => res.writeHead(status, phrase).end('text'))
    const response = await limited(other.origin)
    const plain = await fetch(other.origin)
    const { ok, statusText } = plain
    expect(response).toMatchObject({ status, ok, statusText })
    expect(response.clone()).toMatchObject({ status, ok, statusText })
    expect([await response.text(), await plain.text()]).toEqual(['text', 'text'])
    expect(await isFree()).toBe(true)
  })

  it("a reply of the undici package's fetch has clones, and so have these", async () => {
    const { limited } = await open((_, res) => res.end('text'), undiciFetch as unknown as Fetch)
    const response = await limited(other.origin)
    const clone = response.clone().clone()
    expect([clone.url, clone.status, await clone.text()]).toEqual([`${other.origin}/`, 200, 'text'])
  })

  it('a reply that cannot be delivered holds no permit, and its body is cancelled', async () => {
    let isCancelled = false
    let isMade = false
    class Odd extends Response {
      constructor(body?: ReadableStream) {
        if (isMade) throw new Error('only once')
        super(body)
        isMade = true
      }
    }
    const body = new ReadableStream({ cancel: () => void (isCancelled = true) })
    const { limited, isFree } = await open(
      () => {},
      async () => new Odd(body),
    )
    await expect(limited(other.origin)).rejects.toThrow('only once')
    expect([await isFree(), isCancelled]).toEqual([true, true])
  })
})
