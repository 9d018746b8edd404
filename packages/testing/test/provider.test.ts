import { type Provider, type ProviderOptions, startProvider } from '../src/index.js'

describe('a provider', () => {
  let provider: Provider
  afterEach(() => provider.close())
  const start = async (options: ProviderOptions) => (provider = await startProvider(options))

  it('that is full of open calls states the time that one of them takes, once none counts any more', async () => {
    await start({ limit: 100, windowMs: 0.001, atOnce: 1, latencyMs: 1200, tells: true })
    const first = fetch(provider.origin).catch(() => {})
    while (provider.calls.length === 0) await new Promise(setImmediate)
    const { status, headers } = await fetch(provider.origin)
    expect([status, headers.get('retry-after'), headers.get('ratelimit')]).toEqual([
      429,
      '2',
      '"calls";r=100;t=2',
    ])
    expect(provider.calls[1]).toMatchObject({ accepted: false, retryAfterMs: 2000 })
    provider.close()
    await first
  })

  it.each([
    [{ 'Retry-After': '7' }, 7000],
    [{ 'retry-after': '1' }, 1000],
    [{ 'Retry-After': 'Wed, 21 Oct 2026 07:28:00 GMT' }, 0],
    [{}, 0],
  ])('notes the Retry-After of a reply that a test has chosen: %j', async (headers, retryAfterMs) => {
    await start({ limit: 1, windowMs: 1000, answer: () => ({ status: 429, headers }) })
    await fetch(provider.origin)
    expect(provider.calls).toMatchObject([{ accepted: false, retryAfterMs }])
  })
})
