import { memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import { chat, type Model } from '../../recipes/llm-tokens.js'

describe('the recipe for tokens of a language model', () => {
  let clock: FakeClock
  let model: jest.MockedFunction<Model>
  let app: ReturnType<typeof chat>
  beforeEach(() => {
    clock = new FakeClock()
    model = jest.fn<ReturnType<Model>, Parameters<Model>>(async (_prompt, used) => {
      used(1000)
      return 'an answer'
    })
    const userOf = (request: Request) => request.headers.get('x-user') ?? undefined
    app = chat(model, userOf, memoryStore({ clock: clock.now }))
  })

  const ask = async (asked: object, user = 'ann', signal?: AbortSignal) =>
    app.request('/chat', {
      method: 'POST',
      headers: { 'x-user': user },
      body: JSON.stringify(asked),
      ...(signal && { signal }),
    })
  const left = (response: Response) => Number(response.headers.get('x-ratelimit-remaining'))
  const big = { prompt: 'x'.repeat(3), max_tokens: 3999 }

  it('reserves the most that an answer may cost, so that answers asked for at once stay within the limit', async () => {
    const answers: (() => void)[] = []
    for (let i = 0; i < 5; i++)
      model.mockImplementationOnce(async (_prompt, used) => {
        await new Promise<void>((answer) => answers.push(answer))
        used(100)
        return 'an answer'
      })
    const asked = Array.from({ length: 6 }, () => ask(big))
    const refused = await asked[5]!
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '65'])
    expect(answers.length).toBe(5)
    for (const answer of answers) answer()
    expect((await Promise.all(asked.slice(0, 5))).map(({ status }) => status)).toEqual(Array(5).fill(200))
    expect(left(await ask({ prompt: '', max_tokens: 1 }))).toBe(20_000 - 5 * 100 - 1)
  })

  it('settles to what was used, under both limits', async () => {
    for (let i = 0; i < 20; i++) expect((await ask(big)).status).toBe(i < 17 ? 200 : 429)
    for (let minute = 1; minute < 20; minute++) {
      clock.pass(65_000)
      for (let i = 0; i < 10; i++) await ask(big)
    }
    clock.pass(65_000)
    const refused = await ask(big)
    expect(refused.status).toBe(429)
    expect(model.mock.calls.length).toBeGreaterThanOrEqual(196)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(3600)
    expect((await ask(big, 'bob')).status).toBe(200)
  })

  it('charges nothing for an answer that failed before it began', async () => {
    model.mockRejectedValueOnce(new Error('overloaded'))
    jest.spyOn(console, 'error').mockImplementationOnce(() => {})
    expect((await ask(big)).status).toBe(500)
    expect(left(await ask({ prompt: '', max_tokens: 1 }))).toBe(19_999)
  })

  it('charges what was used when the caller hangs up, and stops the model', async () => {
    const hangUp = new AbortController()
    model.mockImplementationOnce(async ({ signal }, used) => {
      used(300)
      hangUp.abort()
      signal.throwIfAborted()
      return 'never'
    })
    jest.spyOn(console, 'error').mockImplementationOnce(() => {})
    await ask(big, 'ann', hangUp.signal).catch(() => {}) // nobody is there for an answer
    expect(left(await ask({ prompt: '', max_tokens: 1 }))).toBe(20_000 - 300 - 1)
  })

  it.each([
    [{}, 400],
    [{ prompt: 7 }, 400],
    [{ prompt: 'a', max_tokens: 0 }, 400],
    [{ prompt: 'a', max_tokens: 4001 }, 400],
    [{ prompt: 'a', max_tokens: '5' }, 400],
    [{ prompt: 'a'.repeat(100_000) }, 429],
  ])('answers %j without asking the model', async (asked, status) => {
    const response = await ask(asked)
    expect([response.status, response.headers.get('retry-after')]).toEqual([status, null])
    expect(model).not.toHaveBeenCalled()
  })

  it('serves no one it does not know', async () => {
    expect((await app.request('/chat', { method: 'POST', body: '{}' })).status).toBe(401)
  })
})
