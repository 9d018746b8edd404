import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import bun from '../../recipes/bun.js'
import deno from '../../recipes/deno.js'
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
    const statuses: number[] = []
    for (let i = 0; i < 11; i++) {
      const response = await fetch(`http://127.0.0.1:${port}/`)
      statuses.push(response.status)
      await response.text()
    }
    expect(statuses).toEqual([...Array<number>(10).fill(200), 429])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

function request(headers: Record<string, string> = {}): Request {
  return new Request('http://localhost/', { headers })
}
