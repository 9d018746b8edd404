import { createLimiter, createSemaphore, gcra } from '@sluice/core'
import { startOtherParty } from '@sluice/harness/servers'
import { AsyncLocalStorage } from 'node:async_hooks'
import { Agent, request } from 'undici'
import {
  createQueue,
  limitFetch,
  limitUndici,
  type OutboundEvent,
  type OutboundReply,
  type QueueEvent,
} from '../src/index.js'

/*
 * A queue serves its calls one after the other, in the context of any of them, and undici reports in that of its connection. Hooks
 * and listeners run in the context of their call.
 */

const CALLS = 100
const als = new AsyncLocalStorage<string>()
const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Limiter and semaphore with listeners, and what was heard in the context of another call. Each call has a key of its own, or a text of it. */
function open(isOwn: (key: string, own: string | undefined) => boolean) {
  const strange: string[] = []
  const heard = new Map<string, number>()
  const note = (name: string, key: string): void => {
    heard.set(name, (heard.get(name) ?? 0) + 1)
    if (!isOwn(key, als.getStore())) strange.push(`${name} of ${key} in ${als.getStore()}`)
  }
  const limiter = createLimiter({ policies: [gcra({ limit: 100_000, window: '1m' })] })
  const semaphore = createSemaphore({ limit: 3 })
  closing.push(() => limiter.close())
  limiter.on('decision', ({ key }) => note('decision', key))
  for (const type of ['granted', 'waited', 'denied'] as const) {
    semaphore.on(type, ({ key }) => note(`permit ${type}`, key))
  }
  const onEvent = (event: OutboundEvent | QueueEvent): void => {
    if ('key' in event) note(event.type, event.key)
  }
  return { strange, heard, note, limiter, semaphore, onEvent }
}

it('a queue reports the turn, the permit and each step of a call to its own context', async () => {
  const { strange, heard, note, limiter, semaphore, onEvent } = open((key, own) => key === own)
  const retry = (_error: unknown, attempt: number): number | false => attempt < 2 && 0
  const queue = createQueue({ limiter, semaphore, onEvent, retry })
  await Promise.all(
    Array.from({ length: CALLS }, (_, i) =>
      als.run(`k${i}`, () =>
        queue.run(
          async ({ attempt }) => {
            note('fn', `k${i}`)
            await new Promise(setImmediate)
            if (i % 10 === 0 && attempt === 1) throw new Error('once more')
          },
          { key: `k${i}` },
        ),
      ),
    ),
  )
  expect(strange).toEqual([])
  expect(heard.get('decision')).toBe(CALLS + CALLS / 10)
  expect(heard.get('fn')).toBe(CALLS + CALLS / 10)
  expect(heard.get('permit granted')).toBe(CALLS + CALLS / 10)
  await queue.close()
})

it('calls of one key get a decision and a permit each, in a context of their own', async () => {
  const [decided, granted] = [new Map<string, number>(), new Map<string, number>()]
  const count = (counts: Map<string, number>) => {
    const own = String(als.getStore())
    counts.set(own, (counts.get(own) ?? 0) + 1)
  }
  const limiter = createLimiter({ policies: [gcra({ limit: 100_000, window: '1m' })] })
  const semaphore = createSemaphore({ limit: 3 })
  closing.push(() => limiter.close())
  limiter.on('decision', () => count(decided))
  semaphore.on('granted', () => count(granted))
  const queue = createQueue({ limiter, semaphore })
  const ids = Array.from({ length: CALLS }, (_, i) => `call ${i}`)
  // Priorities: a turn that was booked for one call is given to another.
  const turns = ids.map((id, i) =>
    als.run(id, () =>
      queue.run(
        async () => {
          expect([decided.get(id), granted.get(id)]).toEqual([1, 1]) // before the call goes on
          await new Promise(setImmediate)
        },
        { priority: i % 7 },
      ),
    ),
  )
  await Promise.all(turns)
  expect(decided).toEqual(new Map(ids.map((id) => [id, 1])))
  expect(granted).toEqual(decided)
  await queue.close()
})

it.each(['fetch', 'undici'])(
  '%s: hooks, events and decisions run in the context of their request',
  async (client) => {
    const other = await startOtherParty((n, res, { url }) => {
      res.setHeader('x-path', url!.slice(1))
      if (n % 10 === 0) res.writeHead(503).end('no')
      else res.end('ok')
    })
    const { strange, heard, note, limiter, semaphore, onEvent } = open((key, own) => key === own)
    const pathOf = ({ url }: { readonly url: URL | string }): string =>
      new URL(url, other.origin).pathname.slice(1)
    const options = {
      limiter,
      semaphore,
      onEvent,
      key: (outgoing: { readonly url: URL }) => {
        note('key', pathOf(outgoing))
        return pathOf(outgoing)
      },
      isRetryable: (outgoing: { readonly url: URL }) => {
        note('isRetryable', pathOf(outgoing))
        return true
      },
      isRefusal: async ({ reply }: { readonly reply: OutboundReply }) => {
        note('isRefusal', reply.header('x-path')!)
        return undefined
      },
      pauseOf: ({ reply }: { readonly reply: OutboundReply }) => {
        note('pauseOf', reply.header('x-path')!)
        return undefined
      },
    }
    const agent = new Agent({ connections: 4 })
    closing.push(
      () => agent.destroy(),
      () => other.close(),
    )
    const dispatcher = agent.compose(limitUndici(options))
    const limited = limitFetch(fetch, options)
    const call =
      client === 'fetch'
        ? async (url: string) => (await limited(url)).text()
        : async (url: string) => (await request(url, { dispatcher })).body.text()
    await Promise.all(
      Array.from({ length: CALLS }, (_, i) => als.run(`k${i}`, () => call(`${other.origin}/k${i}`))),
    )
    expect(strange).toEqual([])
    expect(heard.get('done')).toBe(CALLS)
    expect(heard.get('retried')).toBeGreaterThan(0)
    expect(heard.get('isRefusal')).toBe(CALLS + heard.get('retried')!)
    expect(heard.get('isRetryable')).toBeGreaterThan(0)
  },
)
