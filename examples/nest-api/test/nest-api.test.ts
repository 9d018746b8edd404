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

test('refuses a fourth order in a row, which is charged to none of its limits', async () => {
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await as('ann', '/orders', 'POST')).status)
  const denied = await as('ann', '/orders', 'POST')
  expect([...statuses, denied.status]).toEqual([201, 201, 201, 429])
  expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(denied.headers.get('ratelimit')).toMatch(
    /"all";.*"OrdersController";.*"OrdersController.create";r=0;/,
  )
  const listed = await as('ann', '/orders')
  expect(listed.headers.get('ratelimit')).toMatch(/^"all";r=16;t=\d+, "OrdersController";r=6;t=\d+$/)
  expect((await as('bob', '/orders', 'POST')).status).toBe(201)
})

test('charges a chat what it has used', async () => {
  expect((await as('ann', '/chat?tokens=950', 'POST')).status).toBe(201)
  expect((await as('ann', '/chat?tokens=10', 'POST')).status).toBe(429)
  const { left } = (await (await as('ann', '/chat/left')).json()) as { left: number }
  expect(left).toBeLessThan(100)
})

test('ends by itself on SIGINT', async () => {
  child.kill('SIGINT')
  expect(await once(child, 'exit')).toEqual([0, null])
})

function as(user: string, path: string, method = 'GET'): Promise<Response> {
  return fetch(`${origin}${path}`, { method, headers: { 'X-User': user } })
}
