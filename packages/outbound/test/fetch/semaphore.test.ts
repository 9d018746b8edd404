import { createSemaphore, memoryStore } from '@sluice/core'
import { bytesInUse } from '@sluice/harness/figures'
import { evenly, open, outcome, pass, refusal, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

describe('with a semaphore', () => {
  const limited = (limit = 1) => createSemaphore({ name: 'test', limit, store: memoryStore() })

  it('at most its limit of calls are under way, until their bodies have been read', async () => {
    const big = () => new Response(new Blob([new Uint8Array(200_000)]).stream())
    const { fetch, sent } = open({ semaphore: limited(2) }, big)
    const calls = [1, 2, 3].map(() => outcome(fetch(URL_)))
    await pass(10)
    expect(sent).toHaveLength(2)
    expect((await calls[0]!.value!.arrayBuffer()).byteLength).toBe(200_000)
    await pass(0)
    expect(sent).toHaveLength(3)
    await calls[1]!.value!.body!.cancel()
    outcome(fetch(URL_))
    await pass(0)
    expect(sent).toHaveLength(4)
  })

  it.each(['its end', 'it is cancelled'])(
    'a body that is read into buffers of the reader holds its permit until %s',
    async (until) => {
      let source!: ReadableStreamDefaultController<Uint8Array>
      const body = new ReadableStream<Uint8Array>({ start: (controller) => void (source = controller) })
      const { fetch, sent } = open({ semaphore: limited() }, () => new Response(body))
      const reader = (await fetch(URL_)).body!.getReader({ mode: 'byob' })
      outcome(fetch(URL_))
      const read = async () => {
        const { done, value } = await reader.read(new Uint8Array(3))
        return done ? undefined : Buffer.from(value).toString()
      }
      const first = read()
      source.enqueue(Buffer.from('abcde'))
      expect([await first, await read()]).toEqual(['abc', 'de'])
      const last = read()
      await pass(0)
      expect(sent).toHaveLength(1)
      if (until === 'its end') source.close()
      else await reader.cancel()
      expect(await last).toBeUndefined()
      await pass(0)
      expect(sent).toHaveLength(2)
    },
  )

  it.each(['default', 'byob'])(
    'a body with empty pieces passes on the others, to a %s reader',
    async (mode) => {
      const pieces = ['', 'a', '', '', 'b', ''].map((text) => new Uint8Array(Buffer.from(text)))
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const piece of pieces) controller.enqueue(piece)
          controller.close()
        },
      })
      const { fetch, sent } = open({ semaphore: limited() }, (n) => new Response(n === 1 ? body : 'ok'))
      const response = await fetch(URL_)
      const reader = mode === 'byob' ? response.body!.getReader({ mode: 'byob' }) : undefined
      const text = reader
        ? Buffer.from((await reader.read(new Uint8Array(9))).value!).toString() +
          Buffer.from((await reader.read(new Uint8Array(9))).value!).toString()
        : await response.text()
      expect(text).toBe('ab')
      await fetch(URL_)
      expect(sent).toHaveLength(2)
    },
  )

  it('a small body that is never read holds no permit', async () => {
    const { fetch, sent } = open({ semaphore: limited() })
    for (let i = 0; i < 5; i++) await fetch(URL_)
    expect(sent).toHaveLength(5)
  })

  it('a response whose body was read does not keep its permit in memory', async () => {
    const semaphore = createSemaphore({ limit: 1 })
    const acquire = semaphore.acquire.bind(semaphore)
    const permits: WeakRef<object>[] = []
    semaphore.acquire = async (...args) => {
      const permit = await acquire(...args)
      permits.push(new WeakRef(permit))
      return permit
    }
    const { fetch } = open({ semaphore })
    const response = await fetch(URL_)
    await response.text()
    await new Promise(jest.requireActual<typeof import('node:timers')>('node:timers').setImmediate)
    bytesInUse()
    expect([permits.length, permits[0]?.deref()]).toEqual([1, undefined])
    expect(response.bodyUsed).toBe(true)
  })

  it('a reply without a body and an error hold no permit', async () => {
    const { fetch, sent } = open({ semaphore: limited() }, (n) =>
      n === 2 ? Promise.reject(new Error('lost')) : new Response(null, { status: 204 }),
    )
    await fetch(URL_)
    await expect(fetch(URL_)).rejects.toThrow('lost')
    await fetch(URL_)
    expect(sent).toHaveLength(3)
  })

  it('a call waits for its retry without a permit', async () => {
    jest.spyOn(Math, 'random').mockReturnValue(0.5) // so the delay is not 0, as it would be once in a hundred
    const semaphore = limited()
    const { fetch } = open({ semaphore }, (n) => (n === 1 ? refusal({ 'retry-after': '1' }) : new Response()))
    outcome(fetch(URL_))
    await pass(0)
    expect((await semaphore.acquire('https://api.example', { maxWait: 0 })).allowed).toBe(true)
  })

  it('a call that the limiter denies releases its permit', async () => {
    const semaphore = limited()
    const { fetch } = open({ semaphore, limiter: evenly(), maxWait: 50 })
    await fetch(URL_)
    await expect(fetch(URL_)).rejects.toMatchObject({ reason: 'limit' })
    expect((await semaphore.acquire('https://api.example', { maxWait: 0 })).allowed).toBe(true)
  })

  it('a call is denied if there is no permit in time', async () => {
    const semaphore = limited()
    const held = await semaphore.acquire('https://api.example')
    const { fetch } = open({ semaphore, maxWait: 100 })
    const call = outcome(fetch(URL_))
    await pass(100)
    expect(call.error).toMatchObject({ reason: 'concurrency', decision: undefined })
    await held.release()
  })

  it('the response keeps its address, status and headers', async () => {
    const answer = Object.defineProperty(new Response('ok', { status: 201, headers: { a: 'b' } }), 'url', {
      value: URL_,
    })
    const response = await open({ semaphore: limited() }, () => answer).fetch(URL_)
    expect(response).toMatchObject({ url: URL_, status: 201 })
    expect(response.headers.get('a')).toBe('b')
    expect(response.clone()).toMatchObject({ url: URL_, status: 201 })
    expect(response.clone().clone().url).toBe(URL_)
    expect(await response.text()).toBe('ok')
  })
})
