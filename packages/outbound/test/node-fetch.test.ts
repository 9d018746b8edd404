import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import FormData from 'form-data'
import fetch from 'node-fetch'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import { limitFetch, type OutboundOptions } from '../src/index.js'

let other: OtherParty
afterEach(() => other.close())

type Answer = Parameters<typeof startOtherParty>[0]
const refuseFirst: Answer = (n, res) =>
  n === 1 ? res.writeHead(429, { 'retry-after-ms': '10' }).end('no') : res.end('ok')

async function open(answer: Answer, options: Partial<OutboundOptions> = {}) {
  other = await startOtherParty(answer)
  const limiter = createLimiter({ policies: [gcra({ limit: 1000, window: '1s' })] })
  return limitFetch(fetch as unknown as typeof globalThis.fetch, { limiter, ...options })
}

it('limits node-fetch, whose bodies are Node streams, and retries a refused call', async () => {
  const semaphore = createSemaphore({ limit: 1 })
  const limited = await open(refuseFirst, { semaphore })
  const response = await limited(other.origin, { method: 'PUT', body: 'pay' })
  expect([response.status, await response.text()]).toEqual([200, 'ok'])
  expect(other.arrived.map(({ body }) => body)).toEqual(['pay', 'pay'])
  expect((await semaphore.acquire(other.origin, { maxWait: '30s' })).allowed).toBe(true)
})

it('holds a permit until a large body has been read, and none for a small body', async () => {
  const semaphore = createSemaphore({ limit: 1 })
  const limited = await open((n, res) => res.end(Buffer.alloc(n === 1 ? 1_000_000 : 10, 'a')), { semaphore })
  const response = await limited(other.origin)
  expect((await semaphore.acquire(other.origin, { maxWait: 50 })).allowed).toBe(false)
  expect(await response.text()).toHaveLength(1_000_000)
  expect((await limited(other.origin)).status).toBe(200)
  expect((await limited(other.origin)).status).toBe(200)
})

it('sends a form of npm once', async () => {
  const limited = await open(refuseFirst)
  const form = new FormData()
  form.append('amount', '1')
  expect((await limited(other.origin, { method: 'PUT', body: form as never })).status).toBe(429)
  expect(other.arrived).toHaveLength(1)
})
