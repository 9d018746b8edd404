import { createLimiter, fixedWindow, gcra, memoryStore, slidingLog, slidingWindow } from '@sluice/core'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import { expectWarnings } from '@sluice/harness/warnings'
import axios from 'axios'
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Readable } from 'node:stream'
import { Agent, request } from 'undici'
import {
  limitAxios,
  limitFetch,
  limitUndici,
  type OutboundOptions,
  type SettleOptions,
} from '../src/index.js'
import { startFakeTime } from './real-io.js'

/** A budget of 100 units, of which a call reserves 40. */
const budget = () =>
  createLimiter({ policies: [fixedWindow({ limit: 100, window: '365d' })], reservations: { max: 10 } })

/** Units that are charged to the budget, and those that are held. */
async function standing(limiter: ReturnType<typeof budget>): Promise<readonly [number, number]> {
  await new Promise((resolve) => setImmediate(resolve))
  const [policy] = (await limiter.peek('k')).policies
  return [policy!.used, policy!.held]
}

const encoder = new TextEncoder()
const units = ({ text, isWhole }: { readonly text: string; readonly isWhole: boolean }) =>
  isWhole ? Number(/"used":(\d+)/.exec(text)?.[1]) : text.length

/** A client of the budget, whose fetch answers with these pieces of a body. */
function client(
  answer: () => Response | Promise<Response>,
  settle: Partial<SettleOptions> = {},
  options: Partial<OutboundOptions> = {},
) {
  const limiter = budget()
  const sent = jest.fn(answer)
  const fetch = limitFetch(sent as typeof globalThis.fetch, {
    limiter,
    key: 'k',
    cost: 40,
    settle: { units, ...settle },
    ...options,
  })
  return { limiter, fetch, sent }
}

/** A response whose body comes piece by piece, each when it is asked for. */
function streamed(...pieces: readonly (string | Error)[]): Response {
  const left = [...pieces]
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = left.shift()
        if (next === undefined) controller.close()
        else if (typeof next === 'string') controller.enqueue(encoder.encode(next))
        else controller.error(next)
      },
    },
    { highWaterMark: 0 },
  )
  return new Response(body)
}

/** A hook with a mistake in it. */
function mistaken(): never {
  throw new Error('mistake')
}

afterEach(() => void jest.useRealTimers())

describe('a call that reserves', () => {
  it('holds its cost while it is under way, and is settled by the end of its body', async () => {
    const { limiter, fetch } = client(() => streamed('data: {}\n\n'.repeat(10_000), 'data: {"used":7}\n\n'))
    const response = await fetch('https://api.example/')
    expect(await standing(limiter)).toEqual([40, 40])
    await response.text()
    expect(await standing(limiter)).toEqual([7, 0])
  })

  it('is settled by what has arrived where its caller hangs up', async () => {
    const { limiter, fetch } = client(() => streamed('x'.repeat(5), 'y'.repeat(200_000)))
    const reader = (await fetch('https://api.example/')).body!.getReader()
    await reader.read()
    await reader.cancel()
    const [used, held] = await standing(limiter)
    expect([used >= 5, held]).toEqual([true, 0])
  })

  it('is settled by what has arrived where its body fails', async () => {
    const { limiter, fetch } = client(() => streamed('abc', new Error('reset')))
    await expect((await fetch('https://api.example/')).text()).rejects.toThrow('reset')
    expect(await standing(limiter)).toEqual([3, 0])
  })

  it('is settled without a body by its reply', async () => {
    const reply = () => new Response(null, { status: 204, headers: { 'x-units': '9' } })
    const { limiter, fetch } = client(reply, { units: ({ reply: { header } }) => Number(header('x-units')) })
    await fetch('https://api.example/')
    expect(await standing(limiter)).toEqual([9, 0])
  })

  it('is settled at its cost where nothing says what it used', async () => {
    const { limiter, fetch } = client(() => streamed('no usage'), { units: () => undefined })
    await (await fetch('https://api.example/')).text()
    expect(await standing(limiter)).toEqual([40, 0])
  })

  it.each([
    ['nothing', undefined, 0],
    ['its cost', 'cost', 40],
  ] as const)('that fails without a reply leaves %s charged with atEnd %s', async (_, atEnd, used) => {
    const failed = () => Promise.reject(new Error('connect'))
    const { limiter, fetch } = client(failed, { ...(atEnd && { atEnd }) })
    await expect(fetch('https://api.example/')).rejects.toThrow('connect')
    expect(await standing(limiter)).toEqual([used, 0])
  })

  it('is settled at its cost where a hook throws about its reply', async () => {
    const { limiter, fetch } = client(() => new Response('{'), {}, { isRefusal: mistaken })
    await expect(fetch('https://api.example/')).rejects.toThrow('mistake')
    expect(await standing(limiter)).toEqual([40, 0])
  })

  it('gives its units back for each attempt that was refused', async () => {
    const answers = [new Response(null, { status: 503 }), new Response(null, { status: 503 })]
    const { limiter, fetch, sent } = client(() => answers.shift() ?? new Response('{"used":3}'), {
      atEnd: 'cost',
    })
    await (await fetch('https://api.example/')).text()
    expect(sent).toHaveBeenCalledTimes(3)
    expect(await standing(limiter)).toEqual([3, 0])
  })

  it('waits for units that others hold, and goes out when they are settled', async () => {
    startFakeTime()
    const { limiter, fetch, sent } = client(() => streamed(' '.repeat(100_000), '{"used":1}'), { ttl: '1h' })
    const open = await Promise.all([fetch('https://api.example/'), fetch('https://api.example/')])
    const third = fetch('https://api.example/')
    await jest.advanceTimersByTimeAsync(2000)
    expect(sent).toHaveBeenCalledTimes(2)
    for (const each of open) await each.text()
    await jest.advanceTimersByTimeAsync(1000)
    expect(sent).toHaveBeenCalledTimes(3)
    jest.useRealTimers()
    await (await third).text()
    expect(await standing(limiter)).toEqual([3, 0])
  })

  it('holds the turn of one limiter while it waits for that of another, however short its ttl is', async () => {
    startFakeTime()
    const tokens = createLimiter({ policies: [slidingWindow({ limit: 2, window: '1h' })], reservations: {} })
    const requests = createLimiter({ policies: [gcra({ limit: 2, window: '3s', burst: 1 })] })
    const sent = jest.fn(async () => new Response('{"used":1}'))
    const fetch = limitFetch(sent, {
      limiter: [tokens, requests],
      key: 'k',
      maxWait: '4s',
      settle: { units, ttl: '1s' },
    })
    const calls = Array.from({ length: 4 }, async () => (await fetch('https://api.example/')).text())
    const ends = Promise.allSettled(calls)
    await jest.advanceTimersByTimeAsync(1400)
    expect(await standing(tokens)).toEqual([2, 1])
    await jest.advanceTimersByTimeAsync(9000)
    expect(sent).toHaveBeenCalledTimes(2)
    jest.useRealTimers()
    expect((await ends).map(({ status }) => status).toSorted()).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ])
    expect(await standing(tokens)).toEqual([2, 0])
  })

  it('gives back what it holds at one limiter where it gets no turn of another', async () => {
    startFakeTime()
    const limiter = budget()
    const requests = createLimiter({ policies: [slidingLog({ limit: 40, window: '1d' })] })
    await requests.hold('k', '10s')
    const options = { limiter: [limiter, requests], key: 'k', cost: 40 } as const
    const fetch = limitFetch(globalThis.fetch, { ...options, settle: { units, ttl: '1s', atEnd: 'cost' } })
    const abort = new AbortController()
    const call = fetch('https://api.example/', { signal: abort.signal }).catch((error: unknown) => error)
    await jest.advanceTimersByTimeAsync(5000)
    expect(await standing(limiter)).toEqual([40, 40])
    abort.abort('enough')
    expect(await call).toBe('enough')
    expect(await standing(limiter)).toEqual([0, 0])
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no usage')
      },
    ],
    ['returns NaN', () => NaN],
    ['returns -1', () => -1],
  ])('is settled at its cost where the function %s, with a warning', async (_, bad) => {
    expectWarnings([], { perhaps: ['SETTLE_FAILED'] })
    const { limiter, fetch } = client(() => streamed('{}'), { units: bad })
    for (let i = 0; i < 2; i++) await (await fetch('https://api.example/')).text()
    expect(await standing(limiter)).toEqual([80, 0])
  })

  it('reserves at the limiters that reserve, and charges the others', async () => {
    const [limiter, rate] = [budget(), createLimiter({ policies: [slidingLog({ limit: 99, window: '1d' })] })]
    const fetch = limitFetch(async () => new Response('{"used":7}'), {
      limiter: [rate, limiter],
      key: 'k',
      cost: 40,
      settle: { units },
    })
    await (await fetch('https://api.example/')).text()
    expect(await standing(limiter)).toEqual([7, 0])
    expect((await rate.peek('k')).policies[0]!.used).toBe(40)
  })

  it('is told to listeners of the limiter in its own context', async () => {
    const { limiter, fetch } = client(() => new Response('{"used":7}'))
    const call = new AsyncLocalStorage<string>()
    const heard: (string | undefined)[] = []
    limiter.on('decision', () => void heard.push(call.getStore()))
    const open = ['one', 'other'].map((name) => call.run(name, () => fetch('https://api.example/')))
    for (const each of open) await (await each).text()
    expect(heard).toEqual(['one', 'other'])
  })

  it('is extended for as long as its body takes', async () => {
    jest.useFakeTimers()
    const store = memoryStore({ clock: () => Date.now() * 1000 })
    const limiter = createLimiter({
      policies: [fixedWindow({ limit: 100, window: '365d' })],
      reservations: {},
      store,
      name: 'budget',
    })
    let end!: () => void
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void (end = () => controller.close()),
    })
    const fetch = limitFetch(async () => new Response(body), {
      limiter,
      key: 'k',
      cost: 40,
      settle: { units: () => 5, ttl: '10s' },
    })
    const response = await fetch('https://api.example/')
    await jest.advanceTimersByTimeAsync(60_000)
    jest.useRealTimers()
    expect((await limiter.peek('k')).policies[0]!.held).toBe(40)
    end()
    await response.text()
    expect(await standing(limiter)).toEqual([5, 0])
  })

  it.each([
    [{ settle: { units: 5 } }, /settle.units/],
    [{ settle: {} }, /settle.units/],
    [{ settle: { units, atEnd: 'all' } }, /settle.atEnd must be 'cost'/],
    [{ settle: { units, ttl: 5 } }, /settle.ttl/],
    [
      { settle: { units }, limiter: createLimiter({ policies: [slidingLog({ limit: 9, window: '1d' })] }) },
      /reservations/,
    ],
  ])('is refused at set-up with %j', (options, message) => {
    const make = () => limitFetch(fetch, { limiter: budget(), ...options } as never)
    expect(make).toThrow(expect.objectContaining({ code: expect.stringMatching(/^INVALID_/) }))
    expect(make).toThrow(message)
  })
})

describe('settle', () => {
  let other: OtherParty
  const limiter = () => budget()
  const answers: Parameters<typeof startOtherParty>[0] = (_, res) => {
    res.setHeader('content-type', 'application/json')
    res.write('x'.repeat(100_000))
    res.end('{"used":7}')
  }
  beforeEach(async () => void (other = await startOtherParty(answers)))
  afterEach(() => other.close())

  it.each(['http', 'fetch'] as const)('reads text that axios has read, with its %s adapter', async (kind) => {
    const of = limiter()
    const adapter = limitAxios(axios.getAdapter(kind), { limiter: of, key: 'k', cost: 40, settle: { units } })
    await axios.get(other.origin, { adapter, responseType: 'text' })
    expect(await standing(of)).toEqual([7, 0])
  })

  it('ends with a Node stream of axios, of which it reads nothing', async () => {
    const of = limiter()
    const seen = jest.fn(() => 9)
    const settle = { units: seen }
    const adapter = limitAxios(axios.getAdapter('http'), { limiter: of, key: 'k', cost: 40, settle })
    const { data } = await axios.get<Readable>(other.origin, { adapter, responseType: 'stream' })
    expect(await standing(of)).toEqual([40, 40])
    for await (const _ of data);
    expect(seen).toHaveBeenCalledWith(expect.objectContaining({ text: '', isWhole: true }))
    expect(await standing(of)).toEqual([9, 0])
  })

  it('reads what undici has passed on', async () => {
    const [of, agent] = [limiter(), new Agent()]
    const dispatcher = agent.compose(limitUndici({ limiter: of, key: 'k', cost: 40, settle: { units } }))
    const { body } = await request(other.origin, { dispatcher })
    expect(await standing(of)).toEqual([40, 40])
    await body.text()
    expect(await standing(of)).toEqual([7, 0])
    await agent.close()
  })

  it('asks about a reply of undici about which a hook throws', async () => {
    const [of, agent, seen] = [limiter(), new Agent(), jest.fn(() => 9)]
    const options = { limiter: of, key: 'k', cost: 40, settle: { units: seen }, isRefusal: mistaken }
    const dispatcher = agent.compose(limitUndici(options))
    await expect(request(other.origin, { dispatcher })).rejects.toThrow('mistake')
    expect(seen).toHaveBeenCalledWith(expect.objectContaining({ text: '', isWhole: false }))
    expect(await standing(of)).toEqual([9, 0])
    await agent.close()
  })
})
