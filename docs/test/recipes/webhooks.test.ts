import { createHmac } from 'node:crypto'
import { RefusedError, type Sender, webhooks } from '../../recipes/webhooks.js'

/** Jest's timers and clock: nothing sleeps. The receivers are functions in place of servers. */
describe('the recipe for webhooks', () => {
  const START = Date.UTC(2026, 0, 1)
  let sent: { readonly at: number; readonly url: string; readonly init: RequestInit }[]
  let answer: (url: string) => Promise<Response> | Response
  let sender: Sender
  beforeEach(() => {
    jest.useFakeTimers({ now: START })
    sent = []
    answer = () => new Response('ok')
    sender = webhooks('secret', undefined, (async (input: string, init: RequestInit) => {
      sent.push({ at: Date.now() - START, url: input, init })
      return answer(input)
    }) as typeof fetch)
  })
  afterEach(async () => {
    await sender.close()
    jest.useRealTimers()
  })
  const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms)
  const send = (url: string, times = 1) => {
    const outcomes: unknown[] = []
    for (let i = 0; i < times; i++)
      sender.send({ id: `msg-${url}-${i}`, url, event: { type: 'paid', i } }).then(
        () => outcomes.push('taken'),
        (error: unknown) => outcomes.push(error),
      )
    return outcomes
  }
  const at = (url: string) => sent.filter((each) => each.url === url).map((each) => each.at)

  it('sends each receiver 3 at once and then 10 a second, whatever the others get', async () => {
    const many = send('https://a.example/hook', 13)
    const few = send('https://b.example/hook', 2)
    await pass(0)
    expect([at('https://a.example/hook').length, at('https://b.example/hook').length, few.length]).toEqual([
      3, 2, 2,
    ])
    await pass(1000)
    expect(at('https://a.example/hook')).toEqual([
      0,
      0,
      0,
      ...Array.from({ length: 10 }, (_, i) => 100 * (i + 1)),
    ])
    expect(many).toEqual(Array(13).fill('taken'))
  })

  it('has no more than 3 under way at one receiver', async () => {
    const answers: (() => void)[] = []
    answer = () => new Promise((resolve) => answers.push(() => resolve(new Response('ok'))))
    send('https://a.example/hook', 5)
    await pass(5000)
    expect(sent.length).toBe(3)
    answers[0]!()
    await pass(0)
    expect(sent.length).toBe(4)
    for (let i = 1; i < 5; i++) {
      answers[i]?.()
      await pass(100)
    }
    expect(sent.length).toBe(5)
  })

  it('holds everything for a receiver that says Retry-After, then sends it again with the same id', async () => {
    answer = () =>
      sent.length === 1
        ? new Response(null, { status: 429, headers: { 'Retry-After': '30' } })
        : new Response('ok')
    const outcomes = send('https://a.example/hook')
    await pass(1000)
    outcomes.push(...send('https://a.example/hook'))
    await pass(28_000)
    expect(sent.length).toBe(1)
    await pass(3000)
    expect(sent.length).toBe(3)
    expect(sent[1]!.at).toBeGreaterThanOrEqual(30_000)
    const ids = sent.map(({ init }) => new Headers(init.headers).get('webhook-id'))
    expect(new Set(ids).size).toBe(1)
    expect(outcomes).toEqual(['taken'])
  })

  it.each([
    ['answers 500', () => new Response(null, { status: 500 })],
    ['cannot be reached', () => Promise.reject(new TypeError('fetch failed'))],
  ])('repeats what failed because the receiver %s, after 1, 2, 4 and 8 minutes', async (_, failing) => {
    answer = failing
    const outcomes = send('https://a.example/hook')
    await pass(16 * 60_000)
    expect(at('https://a.example/hook').map((ms) => Math.round(ms / 60_000))).toEqual([0, 1, 3, 7, 15])
    expect(outcomes).toEqual([expect.any(Error)])
  })

  it('does not repeat what the receiver refused', async () => {
    answer = () => new Response(null, { status: 410 })
    const outcomes = send('https://a.example/hook')
    await pass(3_600_000)
    expect([sent.length, outcomes]).toEqual([1, [expect.any(RefusedError)]])
  })

  it('follows no redirect, which would take the event elsewhere', async () => {
    answer = () => new Response(null, { status: 302, headers: { Location: 'https://evil.example' } })
    const outcomes = send('https://a.example/hook')
    await pass(1000)
    expect([sent[0]!.init.redirect, outcomes]).toEqual(['manual', [expect.any(RefusedError)]])
  })

  it('signs the id, the time and the body', async () => {
    send('https://a.example/hook')
    await pass(0)
    const headers = new Headers(sent[0]!.init.headers)
    const signed = `msg-https://a.example/hook-0.${START / 1000}.{"type":"paid","i":0}`
    const expected = createHmac('sha256', 'secret').update(signed).digest('base64')
    expect(headers.get('webhook-signature')).toBe(`v1,${expected}`)
  })
})
