import { interrupt, nextLine, type Program, start } from './program.js'

let server: Program | undefined
let origin: string

afterAll(stop)

function stop(): void {
  server?.child.kill('SIGKILL')
}

/** Ends the example that ran before. */
async function serve(framework: string): Promise<void> {
  stop()
  server = start(`${framework}/server`, { PORT: '0' })
  origin = (await nextLine(server)).replace('Serving on ', '')
}

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${origin}${path}`, init)
}

function as(user: string, method = 'GET'): RequestInit {
  return { method, headers: { 'X-User': user } }
}

describe.each([
  ['express', '/public', 20],
  ['fastify', '/search/people', 3],
  ['hono', '/', 20],
  ['koa', '/', 20],
  ['nest', '/orders', 10],
  ['observability', '/search', 20],
])('the %s example', (framework, path, limit) => {
  beforeAll(() => serve(framework), 30_000)

  test(`answers ${limit} of ${limit + 1} requests for ${path} with 200, and one with 429 and a wait`, async () => {
    const answers = await Promise.all(Array.from({ length: limit + 1 }, () => ask(path, as('ann'))))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(limit).fill(200), 429])
    const denied = answers[statuses.indexOf(429)]!
    expect(denied.headers.get('content-type')).toContain('application/problem+json')
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('ends by itself on SIGINT', async () => {
    expect(await interrupt(server!)).toBe(0)
  })
})

describe('the Express example', () => {
  beforeEach(() => serve('express'), 30_000)

  test('denies a second login at once, and names the policy that denied it', async () => {
    const answers = await Promise.all([1, 2].map(() => ask('/login', as('ann', 'POST'))))
    const statuses = answers.map(({ status }) => status)
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 429])
    const denied = answers[statuses.indexOf(429)]!
    expect(await denied.json()).toMatchObject({ 'violated-policies': ['login-1-per-1s'] })
    expect((await ask('/login', as('bob', 'POST'))).status).toBe(200)
  })

  test('charges an export its rows, by API key', async () => {
    const post = (rows: number, key: string) =>
      ask(`/export?rows=${rows}`, { method: 'POST', headers: { 'X-API-Key': key } })
    const first = await post(90, 'acme')
    expect([first.status, first.headers.get('x-ratelimit-remaining')]).toEqual([200, '10'])
    expect((await post(100, 'acme')).status).toBe(429)
    expect((await post(100, 'globex')).status).toBe(200)
  })
})

describe.each(['hono', 'koa'])('the %s example', (framework) => {
  beforeEach(() => serve(framework), 30_000)

  test('denies a fourth order in a row, and lists both limits it came under', async () => {
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await ask('/orders', as('ann', 'POST'))).status)
    const denied = await ask('/orders', as('ann', 'POST'))
    expect([...statuses, denied.status]).toEqual([201, 201, 201, 429])
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(denied.headers.get('ratelimit')).toMatch(/^"all";r=16;t=\d+, "create-order";r=0;t=\d+$/)
    expect((await ask('/orders', as('bob', 'POST'))).status).toBe(201)
  })

  test('charges a chat what it has used', async () => {
    expect((await ask('/chat?tokens=950', as('ann', 'POST'))).status).toBe(200)
    expect((await ask('/chat?tokens=10', as('ann', 'POST'))).status).toBe(429)
  })

  test('reports on every route what is left', async () => {
    expect(await (await ask('/')).json()).toEqual({ left: 19 })
  })
})

describe('the Fastify example', () => {
  beforeEach(() => serve('fastify'), 30_000)

  test('counts the searches of a user together, in place of the limit of all routes', async () => {
    const paths = ['/search/people', '/search/places', '/search/people', '/search/places']
    const statuses = []
    for (const path of paths) statuses.push((await ask(path, as('ann'))).status)
    expect(statuses).toEqual([200, 200, 200, 429])
    const { status, headers } = await ask('/search/places', as('bob'))
    expect([status, headers.get('x-ratelimit-limit')]).toEqual([200, '3'])
  })

  test('charges an import its rows, and denies what is too large', async () => {
    const post = (rows: number) =>
      ask('/import', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(Array(rows).fill({})),
      })
    expect(await (await post(90)).json()).toEqual({ rows: 90 })
    const denied = await post(20)
    expect(denied.status).toBe(429)
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('reports what is left, and counts no health checks', async () => {
    expect((await ask('/health')).headers.has('x-ratelimit-limit')).toBe(false)
    expect(await (await ask('/')).json()).toEqual({ left: 19 })
  })
})

describe('the Nest example', () => {
  beforeEach(() => serve('nest'), 30_000)

  test('denies a fourth order in a row, which is charged to none of its limits', async () => {
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await ask('/orders', as('ann', 'POST'))).status)
    const denied = await ask('/orders', as('ann', 'POST'))
    expect([...statuses, denied.status]).toEqual([201, 201, 201, 429])
    expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(denied.headers.get('ratelimit')).toMatch(
      /"all";.*"OrdersController";.*"OrdersController.create";r=0;/,
    )
    const listed = await ask('/orders', as('ann'))
    expect(listed.headers.get('ratelimit')).toMatch(/^"all";r=16;t=\d+, "OrdersController";r=6;t=\d+$/)
    expect((await ask('/orders', as('bob', 'POST'))).status).toBe(201)
  })

  test('charges a chat what it has used', async () => {
    expect((await ask('/chat?tokens=950', as('ann', 'POST'))).status).toBe(201)
    expect((await ask('/chat?tokens=10', as('ann', 'POST'))).status).toBe(429)
    const { left } = (await (await ask('/chat/left', as('ann'))).json()) as { left: number }
    expect(left).toBeLessThan(100)
  })
})
