import { Deadline } from '../../src/resilience/deadline.js'
import { StoreChannel } from '../../src/resilience/store-channel.js'
import type { Store } from '../../src/index.js'

const MINUTE = 60_000
const DEADLINE = 100

/** A way to a store that answers a call when the test says so. */
function way() {
  const channel = new StoreChannel({ now: () => 0 } as Store)
  const deadline = new Deadline(DEADLINE, channel)
  /** Of each call that was sent, what answers it. */
  const sent: (() => void)[] = []
  return {
    sent,
    async send(calls: number) {
      const act = () => new Promise<void>((answer) => void sent.push(answer))
      for (let i = 0; i < calls; i++) channel.send(act, deadline).catch(() => {})
      await jest.advanceTimersByTimeAsync(0)
    },
    async answer(from: number, to: number) {
      for (const answer of sent.slice(from, to)) answer()
      await jest.advanceTimersByTimeAsync(0)
    },
  }
}

describe('calls in flight', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  it('are at most 1,000, and make room when they end', async () => {
    const { send, answer, sent } = way()
    await send(1001)
    expect(sent).toHaveLength(1000)
    await answer(500, 501)
    expect(sent).toHaveLength(1001)
  })

  it('count as lost a minute after their deadline, and once', async () => {
    const { send, answer, sent } = way()
    await send(1000)
    await jest.advanceTimersByTimeAsync(MINUTE)
    await send(1)
    expect(sent).toHaveLength(1000)
    await jest.advanceTimersByTimeAsync(2 * DEADLINE)
    await send(999)
    expect(sent).toHaveLength(1999)
    await answer(0, 1000)
    await send(2)
    expect(sent).toHaveLength(2000)
  })

  it('make room for no more calls than were lost', async () => {
    const { send, sent } = way()
    await send(500)
    await jest.advanceTimersByTimeAsync(MINUTE / 2)
    await send(500)
    await jest.advanceTimersByTimeAsync(MINUTE / 2 + 2 * DEADLINE)
    await send(501)
    expect(sent).toHaveLength(1500)
  })
})
