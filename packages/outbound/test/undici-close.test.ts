import { createLimiter, gcra } from '@sluice/core'
import { Agent, interceptors, request } from 'undici'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import { limitUndici } from '../src/index.js'

let other: OtherParty
let agent: Agent
afterEach(async () => {
  other.close()
  await agent.destroy()
})

type Answer = Parameters<typeof startOtherParty>[0]
const ok: Answer = (_, res) => res.end('ok')
const refuseFirst: Answer = (n, res) =>
  n === 1 ? res.writeHead(429, { 'retry-after': '1' }).end('no') : res.end('ok')

async function open(answer: Answer) {
  other = await startOtherParty(answer)
  agent = new Agent()
  const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
  return { dispatcher: agent.compose(limitUndici({ limiter })), limiter }
}

it('an interceptor fails waiting calls at once when the limiter is closed', async () => {
  const { dispatcher, limiter } = await open(ok)
  await limiter.hold(other.origin, '10s')
  const call = request(other.origin, { dispatcher })
  await dispatcher.close()
  await limiter.close()
  await expect(call).rejects.toMatchObject({ code: 'CLOSED' })
})

describe('a dispatcher with a limit', () => {
  const dispatcherWith = (limiter: ReturnType<typeof createLimiter>) => limitUndici(agent, { limiter })

  it('sends waiting calls before it closes, as the agent does', async () => {
    const { limiter } = await open(ok)
    const dispatcher = dispatcherWith(limiter)
    const calls = [1, 2, 3].map(async () => (await request(other.origin, { dispatcher })).body.text())
    const closed = dispatcher.close()
    await expect(request(other.origin, { dispatcher })).rejects.toMatchObject({ code: 'UND_ERR_CLOSED' })
    expect(await Promise.all(calls)).toEqual(['ok', 'ok', 'ok'])
    await closed
    expect(agent.closed).toBe(true)
  })

  it('fails waiting calls when it is destroyed', async () => {
    const { limiter } = await open(ok)
    await limiter.hold(other.origin, '10s')
    const dispatcher = dispatcherWith(limiter)
    const call = request(other.origin, { dispatcher })
    const destroyed = dispatcher.destroy()
    await expect(call).rejects.toMatchObject({ code: 'UND_ERR_DESTROYED' })
    await destroyed
    expect(other.arrived).toHaveLength(0)
  })

  it('accepts the callbacks that the agent accepts', async () => {
    const { limiter } = await open(ok)
    await new Promise<void>((resolve) => dispatcherWith(limiter).close(resolve))
    expect(agent.closed).toBe(true)
    await new Promise<void>((resolve) => dispatcherWith(limiter).destroy(resolve))
    expect(agent.destroyed).toBe(true)
  })

  it('can be composed further', async () => {
    const { limiter } = await open(refuseFirst)
    const dispatcher = dispatcherWith(limiter).compose(interceptors.redirect({ maxRedirections: 1 }))
    expect((await request(other.origin, { dispatcher })).statusCode).toBe(200)
    await dispatcher.close()
    expect(agent.closed).toBe(true)
  })
})
