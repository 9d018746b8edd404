import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { collect } from '@sluice/harness/figures'
import { setImmediate } from 'node:timers/promises'
import { limitFetch } from '../../src/index.js'

type Fetch = typeof globalThis.fetch

/** A fetch with a semaphore of one permit. */
function open(fetch: Fetch) {
  const limiter = createLimiter({ policies: [gcra({ limit: 1000, window: '1s' })] })
  const semaphore = createSemaphore({ limit: 1 })
  const isFree = async () => (await semaphore.acquire(KEY, { maxWait: 0 })).allowed
  return { limited: limitFetch(fetch, { limiter, semaphore, key: () => KEY }), isFree }
}
const KEY = 'key'
const URL_ = 'https://api.example/pay'

/** A body of zeros that is never at its end. */
function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10_000)) })
}

async function collected(): Promise<void> {
  for (let i = 0; i < 5; i++) {
    await setImmediate()
    collect()
  }
  await setImmediate()
}

describe('a permit of a body that is not at its end', () => {
  it.each([
    ['of its response', ({ body }: Response) => body!],
    ['of all its responses but a clone', (response: Response) => (response.clone(), response).clone().body!],
  ])('is held while the body %s is read, although the response is collected', async (_, bodyOf) => {
    const { limited, isFree } = open(async () => new Response(endless()))
    const reader = bodyOf(await limited(URL_)).getReader()
    await collected()
    await reader.read()
    expect(await isFree()).toBe(false)
    await reader.cancel()
  })

  it('is released when response and body are collected', async () => {
    const { limited, isFree } = open(async () => new Response(endless()))
    await limited(URL_)
    await collected()
    expect(await isFree()).toBe(true)
  })

  it('is released when the clones of its response are collected', async () => {
    const { limited, isFree } = open(async () => new Response(endless()))
    ;(await limited(URL_)).clone()
    await collected()
    expect(await isFree()).toBe(true)
  })
})
