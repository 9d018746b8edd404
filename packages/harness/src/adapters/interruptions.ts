import { setImmediate as turn } from 'node:timers/promises'
import type { Limiter } from '@sluice/core'
import { byIp, byUser, type RequestLimitOptions } from '@sluice/http'
import type { Adapter, Answer } from './adapter.js'
import { GET, sendRaw } from './client.js'
import { stopped } from './limits.js'
import { itWith } from './it-with.js'
import type { Serve, Site } from './site.js'

const LARGE = 'x'.repeat(16_000_000)

/** Declares the tests that every adapter has to pass about charges by outcome when a response streams, breaks off, or the caller hangs up. */
export function interruptionCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('charge by outcome', () => {
    let limiter: Limiter
    beforeEach(() => {
      limiter = stopped(4)
    })

    it('is called when a stream has ended, not before', async () => {
      const gate = closedGate()
      async function* body() {
        yield 'first'
        await gate.opened
        yield 'last'
      }
      const shouldCharge = jest.fn(() => false)
      const site = await limited(shouldCharge, () => ({ body: body() }))
      const closed = site.nextClosed()
      const socket = sendRaw(site.port, GET)
      await received(socket, 'first')
      expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
      gate.open()
      await closed
      socket.destroy()
      expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([1, 4])
    })

    it('keeps the charge when a stream breaks off', async () => {
      async function* body() {
        yield 'first'
        await turn()
        throw new Error('no more')
      }
      const shouldCharge = jest.fn(() => false)
      const site = await limited(shouldCharge, () => ({ body: body() }))
      const closed = site.nextClosed()
      await expect(site.send()).rejects.toThrow()
      await closed
      expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
    })

    it('keeps the charge when the caller hangs up before the response', async () => {
      const gate = closedGate()
      const handling = closedGate()
      const shouldCharge = jest.fn(() => false)
      const site = await limited(shouldCharge, async () => {
        handling.open()
        await gate.opened
        return { body: 'too late' }
      })
      await hangUp(site, 'destroy', handling, gate)
      expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
    })

    const BODIES = [
      ['a large response', () => LARGE, 'ends of large responses'],
      ['a stream', endless],
    ] as const
    for (const [what, body, feature] of BODIES) {
      itWith(adapter, feature)(
        `keeps the charge when the caller hangs up in the middle of ${what}`,
        async () => {
          const shouldCharge = jest.fn(() => false)
          const site = await limited(shouldCharge, () => ({ body: body() }))
          const closed = site.nextClosed()
          const socket = sendRaw(site.port, GET)
          await received(socket, 'xxx')
          socket.destroy()
          await closed
          await site.idle()
          expect([shouldCharge.mock.calls.length, await remaining()]).toEqual([0, 3])
        },
      )
    }

    it.each<[string, (wait: () => Promise<void>) => RequestLimitOptions<Req, Res>]>([
      ['skip', (wait) => ({ skip: () => wait().then(() => false) })],
      ['byUser', (wait) => ({ key: byUser(() => wait().then(() => undefined)) })],
      [
        'a key of its own',
        (wait) => ({ key: (req, source) => wait().then(async () => byIp<Req>()(req, source)) }),
      ],
    ])('counts a caller that hangs up during an async %s by its address', async (_, optionsOf) => {
      const gate = closedGate()
      const waiting = closedGate()
      const keys: string[] = []
      limiter.on('decision', ({ key }) => void keys.push(key))
      limiter.on('warning', () => {})
      const wait = (): Promise<void> => {
        waiting.open()
        return gate.opened
      }
      const site = await serve([{ limiter, ...optionsOf(wait) }])
      await hangUp(site, 'resetAndDestroy', waiting, gate)
      expect(keys).toEqual(['ip:127.0.0.1'])
    })

    it('gives no second allowance if the caller hung up before the limiter was called', async () => {
      const gate = closedGate()
      const waiting = closedGate()
      const keys: string[] = []
      limiter.on('decision', ({ key }) => void keys.push(key))
      const before = (): Promise<void> => {
        waiting.open()
        return gate.opened
      }
      const site = await serve([{ limiter }], { before })
      await hangUp(site, 'resetAndDestroy', waiting, gate)
      // Nest on Fastify has read the address by then. Where it is lost the request goes no further.
      expect([[], ['ip:127.0.0.1']]).toContainEqual(keys)
      expect(site.handled).toBe(keys.length)
    })

    function limited(
      shouldCharge: RequestLimitOptions<Req, Res>['shouldCharge'] & {},
      answer?: () => Answer | Promise<Answer>,
    ) {
      return serve([{ limiter, key: () => 'k', shouldCharge }], answer && { answer })
    }

    async function remaining(): Promise<number> {
      return (await limiter.peek('k')).remaining
    }
  })
}

/** A body of more than fits into a connection that is not read from. */
export async function* endless() {
  for (let i = 0; i < 1000; i++) {
    yield LARGE.slice(0, 64_000)
    await turn()
  }
}

/** Reads until a text has come. Rejects if the stream ends before. */
export async function received(socket: NodeJS.ReadableStream, text: string): Promise<void> {
  let seen = ''
  socket.resume()
  await new Promise<void>((resolve, reject) => {
    socket.on('data', function look(chunk: Buffer) {
      seen += chunk.toString()
      if (!seen.includes(text)) return
      socket.off('data', look).pause()
      resolve()
    })
    socket.once('error', reject).once('end', () => reject(new Error(`ended after ${seen}`)))
  })
}

/** Sends a request, hangs up once `reached` is open, and lets what waits at `gate` go on after that. */
export async function hangUp(
  site: Site,
  how: 'destroy' | 'resetAndDestroy',
  reached: Gate,
  gate: Gate,
): Promise<void> {
  const closed = site.nextClosed()
  const socket = sendRaw(site.port, GET)
  await reached.opened
  socket[how]()
  await closed
  gate.open()
  await site.idle()
}

type Gate = ReturnType<typeof closedGate>

export function closedGate(): { readonly opened: Promise<void>; open(): void } {
  let open!: () => void
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}
