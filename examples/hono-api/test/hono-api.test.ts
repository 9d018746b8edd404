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

test('refuses a fourth order in a row, and lists both limits it came under', async () => {
  const statuses = []
  for (let i = 0; i < 3; i++) statuses.push((await post('/orders', 'ann')).status)
  const denied = await post('/orders', 'ann')
  expect([...statuses, denied.status]).toEqual([201, 201, 201, 429])
  expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(denied.headers.get('ratelimit')).toMatch(/^"all";r=16;t=\d+, "create-order";r=0;t=\d+$/)
  expect((await post('/orders', 'bob')).status).toBe(201)
})

test('charges a chat what it has used', async () => {
  expect((await post('/chat?tokens=950', 'ann')).status).toBe(200)
  expect((await post('/chat?tokens=10', 'ann')).status).toBe(429)
})

test('tells on every route what is left', async () => {
  expect(await (await fetch(origin)).json()).toEqual({ left: 19 })
})

test('ends by itself on SIGINT', async () => {
  child.kill('SIGINT')
  expect(await once(child, 'exit')).toEqual([0, null])
})

function post(path: string, user: string): Promise<Response> {
  return fetch(`${origin}${path}`, { method: 'POST', headers: { 'X-User': user } })
}
