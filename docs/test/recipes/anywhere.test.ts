import { createSemaphore } from '@sluice/core'
import { H3, HTTPError, serve } from 'h3'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import bun from '../../recipes/bun.js'
import deno from '../../recipes/deno.js'
import { app, rateLimit } from '../../recipes/h3.js'
import { GET } from '../../recipes/next/route.js'
import { server } from '../../recipes/plain-http.js'
import worker from '../../recipes/worker.js'

type Send = (address: string) => Promise<Response>

/** Each as its platform calls it; `verify -- runtimes` and `verify -- frameworks` have the platforms themselves. */
const RECIPES: readonly (readonly [string, Send])[] = [
  ['Bun', (address) => bun.fetch(request(), { requestIP: () => ({ address }) })],
  ['Deno', (hostname) => deno.fetch(request(), { remoteAddr: { hostname } })],
  ['a Worker', (address) => worker.fetch(request({ 'CF-Connecting-IP': address }))],
  ['a route of Next.js', (address) => GET(request({ 'X-Forwarded-For': `203.0.113.9, ${address}` }))],
]

it.each(RECIPES)('the recipe for %s admits ten requests a minute from an address', async (_, send) => {
  for (let i = 0; i < 10; i++) expect((await send('192.0.2.1')).status).toBe(200)
  const denied = await send('192.0.2.1')
  expect([denied.status, denied.headers.get('content-type')]).toEqual([429, 'application/problem+json'])
  expect((await send('192.0.2.2')).status).toBe(200)
})

it('the recipe for plain http admits ten requests a minute', async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  try {
    const answers = await ask(11, `http://127.0.0.1:${port}/`)
    expect(answers.map(({ status }) => status)).toEqual([...Array<number>(10).fill(200), 429])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

it('the adapter for h3 admits ten requests a minute, and answers others and errors with the limit', async () => {
  const served = serve(app, { port: 0, hostname: '127.0.0.1', silent: true })
  const { url } = await served.ready()
  try {
    const [hello, nowhere] = [`${url}api/hello`, `${url}api/nowhere`]
    const answers = [...(await ask(9, hello)), ...(await ask(1, nowhere)), ...(await ask(1, hello))]
    expect(answers.map(({ status }) => status)).toEqual([...Array<number>(9).fill(200), 404, 429])
    const remaining = answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))
    expect(remaining.join(' ')).toBe('9 8 7 6 5 4 3 2 1 0 0')
    expect(answers.at(-1)!.headers.get('content-type')).toBe('application/problem+json')
    expect(await ask(1, `${url}health`)).toMatchObject([{ status: 200 }])
  } finally {
    await served.close(true)
  }
})

it('the adapter for h3 holds a permit until a request is answered, also by an error', async () => {
  const limit = rateLimit({
    limits: [
      { name: 'all', limit: 9, window: '1m' },
      { semaphore: createSemaphore({ name: 'one', limit: 1 }) },
    ],
  })
  const one = new H3()
    .use(limit)
    .get('/', () => 'hello')
    .get('/fails', fail)
  const served = serve(one, { port: 0, hostname: '127.0.0.1', silent: true })
  const { url } = await served.ready()
  try {
    const answers = [...(await ask(2, url!)), ...(await ask(1, `${url}fails`)), ...(await ask(1, url!))]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 500, 200])
  } finally {
    await served.close(true)
  }
})

function fail(): never {
  throw new HTTPError('no database', { status: 500 })
}

/** The answers to so many requests, one after the other. */
async function ask(times: number, url: string): Promise<readonly Response[]> {
  const answers: Response[] = []
  for (let i = 0; i < times; i++) {
    const response = await fetch(url)
    await response.text()
    answers.push(response)
  }
  return answers
}

function request(headers: Record<string, string> = {}): Request {
  return new Request('http://localhost/', { headers })
}
