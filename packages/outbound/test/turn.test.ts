import type { Permit } from '@sluice/core'
import type { WaitingSettings } from '../src/waiting-options.js'
import { type Client, Turn } from '../src/turn.js'

/** A turn of a client without a further limiter, with its ends and the outcomes that its permit was given back with. */
function open(maxWaitMs = Infinity) {
  const ends: string[] = []
  const outcomes: unknown[] = []
  const client: Client = {
    settings: {} as WaitingSettings,
    policies: undefined,
    enterNext: () => false,
    ended: (_, end) => ends.push(end),
  }
  const terms = {
    keys: ['key'],
    cost: 1,
    priority: 0,
    tenant: undefined,
    weight: 1,
    maxWaitMs,
    signal: undefined,
  } as const
  const turn = new Turn(client, terms, 'key')
  turn.comes.catch(() => {})
  const release = async (...outcome: unknown[]) => void outcomes.push(outcome)
  const permit = { release } as unknown as Permit
  return { turn, permit, ends, outcomes }
}

describe('a turn', () => {
  it('is granted, and returned once with what became of the call', async () => {
    const { turn, permit, ends, outcomes } = open()
    turn.returned()
    turn.granted(undefined, [permit])
    await turn.comes
    turn.judged({ ...turn.ending, outcome: 'refused', tookMs: 7 })
    turn.returned()
    turn.returned()
    expect([ends, outcomes]).toEqual([['granted', 'returned'], [['refused', 7]]])
  })

  it('is returned as failed without a verdict', () => {
    const { turn, permit, outcomes } = open()
    turn.granted(undefined, [permit])
    turn.returned()
    expect(outcomes).toEqual([['failed', 0]])
  })

  it('is refused, and never returned', async () => {
    const { turn, ends } = open()
    turn.refused(new Error('no'))
    turn.returned()
    await expect(turn.comes).rejects.toThrow('no')
    expect(ends).toEqual(['refused'])
  })

  it('passes its booking to an heir, whose deadline it is asked for with then', () => {
    const [{ turn }, { turn: heir }] = [open(5000), open(1000)]
    const booking = turn.book()
    turn.passOn(heir)
    const { maxWait, signal } = booking.options('key')
    expect(maxWait).toBeLessThanOrEqual(1000)
    heir.passOn()
    expect([signal.aborted, booking.end()]).toEqual([true, undefined])
  })

  it('has a booking that ends for itself, and is not cancelled after that', () => {
    const { turn } = open()
    const booking = turn.book()
    const { signal } = booking.options('key')
    expect(booking.end()).toBe(turn)
    turn.passOn()
    expect([signal.aborted, booking.isCancelled]).toEqual([false, false])
  })
})
