import { limitFetch, type OutboundOptions, type RefusalKind } from '../../src/index.js'
import { generous, open, outcome, pass, refusal, URL_, useFakeTime } from './limited-fetch.js'

useFakeTime()

const saying =
  (said: unknown): NonNullable<OutboundOptions['isRefusal']> =>
  () =>
    said as RefusalKind
const WAIT = { 'retry-after': '1' }
const USED_UP = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '2' }

describe('isRefusal', () => {
  it.each<[unknown, number, Record<string, string>, sends: number, holdMs: number | undefined]>([
    [undefined, 429, WAIT, 2, 1000],
    [false, 429, WAIT, 2, 1000],
    ['FINAL', 429, WAIT, 2, 1000],
    [false, 502, WAIT, 1, undefined],
    [true, 502, WAIT, 2, 1000],
    ['final', 429, WAIT, 1, undefined],
    ['final', 429, USED_UP, 1, undefined],
    ['final', 402, {}, 1, undefined],
    ['none', 429, WAIT, 1, undefined],
    ['none', 503, {}, 1, undefined],
    ['none', 403, WAIT, 1, undefined],
    // As any reply with a quota that is used up.
    ['none', 429, USED_UP, 1, 2000],
  ])('%p of a %d with %j', async (said, status, headers, sends, holdMs) => {
    const { fetch, sent, events } = open({ isRefusal: saying(said), retries: 1, maxWait: '1m' }, () =>
      refusal(headers, status),
    )
    const call = outcome(fetch(URL_))
    await pass(10_000)
    expect(call.value!.status).toBe(status)
    expect(sent).toHaveLength(sends)
    const held = events.find(({ type }) => type === 'held')
    expect(held).toEqual(holdMs === undefined ? undefined : expect.objectContaining({ holdMs }))
  })

  it("'final' is reported", async () => {
    const limited = limitFetch(async () => refusal(), { limiter: generous(), isRefusal: saying('final') })
    const givenUp: unknown[] = []
    limited.on('done', (event) => givenUp.push(event.givenUp))
    await limited(URL_)
    expect(givenUp).toEqual(['final'])
  })

  it.each(['final', 'none'])('%p adds nothing to a row of refusals', async (said) => {
    let n = 0
    const isRefusal: NonNullable<OutboundOptions['isRefusal']> = () =>
      n++ === 0 ? (said as RefusalKind) : undefined
    const { fetch, events } = open({ isRefusal, retries: 0 }, () => refusal({}, 503))
    await fetch(URL_)
    await fetch(URL_)
    expect(events).toEqual([])
  })

  it('goes before the provider', async () => {
    const body = JSON.stringify({ error: { code: 'insufficient_quota' } })
    const answer = () => new Response(body, { status: 429, headers: { 'content-type': 'application/json' } })
    for (const [said, sends] of [
      [undefined, 1],
      [false, 1],
      [true, 2],
      ['none', 1],
    ] as const) {
      const { fetch, sent } = open({ provider: 'openai', isRefusal: saying(said), retries: 1 }, answer)
      const call = outcome(fetch(URL_))
      await pass(5000)
      expect([call.value!.status, sent.length]).toEqual([429, sends])
    }
  })
})
