import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const MAIN = join(__dirname, '../dist/main.js')

let child: ChildProcess
let origin: string

beforeEach(async () => {
  const server = spawn(process.execPath, [MAIN], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, PORT: '0' },
  })
  child = server
  const [line] = (await once(createInterface(server.stdout), 'line')) as [string]
  origin = line.replace('Serving on ', '')
}, 30_000)

afterEach(() => {
  child.kill('SIGKILL')
})

test('counts the searches of a user together, in place of the limit of all routes', async () => {
  const paths = ['/search/people', '/search/places', '/search/people', '/search/places']
  const statuses = []
  for (const path of paths) statuses.push((await search(path, 'ann')).status)
  expect(statuses).toEqual([200, 200, 200, 429])
  const { status, headers } = await search('/search/places', 'bob')
  expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, '3'])
})

test('charges an import its rows, and refuses what is too large', async () => {
  const post = (rows: number) =>
    fetch(`${origin}/import`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(Array(rows).fill({})),
    })
  expect(await (await post(90)).json()).toEqual({ rows: 90 })
  const denied = await post(20)
  expect(denied.status).toBe(429)
  expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
})

test('tells what is left, and counts no health checks', async () => {
  expect((await fetch(`${origin}/health`)).headers.has('x-ratelimit-limit')).toBe(false)
  expect(await (await fetch(origin)).json()).toEqual({ left: 19 })
})

test('ends by itself on SIGINT', async () => {
  child.kill('SIGINT')
  expect(await once(child, 'exit')).toEqual([0, null])
})

function search(path: string, user: string): Promise<Response> {
  return fetch(`${origin}${path}`, { headers: { 'X-User': user } })
}
