import { createLimiter, createSemaphore, type Limiter, type Semaphore, slidingLog } from '@sluice/core'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { Server } from 'node:net'
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import type { RequestLimitOptions } from '@sluice/http'
import { closedGate } from './interruptions.js'

/**
 * An application over HTTP/2. `/` is limited by address; some paths as `ofPaths` says; the others by the key 'k', with
 * `shouldCharge`: `/charged` sends `LARGE`, `/streamed` the stream `endless`, and `/late` answers when its caller has gone.
 */
export interface Http2Site {
  readonly server: Server
  readonly origin: string
  close(): Promise<unknown>
}

/** A body that is not sent at once. */
export const LARGE = 'x'.repeat(8_000_000)

/** A stream that does not end. */
export function endless(): Readable {
  return Readable.from(chunks())
}

async function* chunks() {
  for (;;) {
    yield Buffer.alloc(64_000)
    await turn()
  }
}

/** The limits of paths, by path. */
type OfPaths = Readonly<Record<string, RequestLimitOptions<unknown, unknown>>>

/** Declares the tests of charges over HTTP/2; `further` are paths whose large responses are reset too. */
export function chargesOverHttp2(
  serve: (limiter: Limiter, shouldCharge: () => boolean, ofPaths: OfPaths) => Promise<Http2Site>,
  further: readonly string[] = [],
): void {
  let site: Http2Site
  let session: ClientHttp2Session
  let limiter: Limiter
  let shouldCharge: jest.Mock
  let semaphore: Semaphore
  let gate: ReturnType<typeof closedGate>
  let reached: typeof gate

  beforeEach(async () => {
    limiter = createLimiter({ policies: [slidingLog({ limit: 2, window: '1m' })] })
    shouldCharge = jest.fn(() => false)
    semaphore = createSemaphore({ limit: 1 })
    gate = closedGate()
    reached = closedGate()
    const key = async (): Promise<string> => {
      reached.open()
      await gate.opened
      return 'k'
    }
    site = await serve(limiter, shouldCharge, {
      '/held': { limits: [{ limiter }, { semaphore }], key },
      '/waiting': { limiter, key, maxWait: '1d' },
    })
    session = connect(site.origin)
  })

  afterEach(async () => {
    session.destroy()
    await site.close()
  })

  it('a caller is limited by its address', async () => {
    const statuses: unknown[] = []
    for (let i = 0; i < 3; i++) statuses.push(await statusOf(session, '/'))
    expect(statuses).toEqual([200, 200, 429])
    expect((await limiter.peek('ip:127.0.0.1')).remaining).toBe(0)
  })

  it('shouldCharge is called when the response has been sent', async () => {
    const responded = nextResponse(site)
    await statusOf(session, '/charged')
    await responded
    expect(shouldCharge.mock.calls).toHaveLength(1)
    expect((await limiter.peek('k')).remaining).toBe(2)
  })

  it.each<[string, string, (stream: ClientHttp2Stream) => void]>([
    ['goes away in the middle of a large response', '/charged', () => session.destroy()],
    ...['/charged', '/streamed', ...further].map((path): [string, string, typeof reset] => [
      `resets the response of ${path}`,
      path,
      reset,
    ]),
  ])('the charge is kept when the caller %s', async (_, path, hangUp) => {
    const responded = nextResponse(site)
    const stream = session.request({ ':path': path }).on('error', () => undefined)
    await once(stream, 'response')
    hangUp(stream)
    await responded
    await expectCharged()
  })

  it('the charge is kept when the caller hangs up before the response', async () => {
    const responded = nextResponse(site)
    const reached = once(site.server, 'request')
    const stream = session.request({ ':path': '/late' }).on('error', () => undefined)
    await reached
    reset(stream)
    await responded
    await expectCharged()
  })

  it.each([
    ['/held', 1],
    ['/waiting', 2],
  ])('%s holds nothing for a caller that hung up before it was counted', async (path, remaining) => {
    const responded = nextResponse(site)
    const stream = session.request({ ':path': path }).on('error', () => undefined)
    await reached.opened
    reset(stream)
    await responded
    gate.open()
    await statusOf(session, '/')
    expect([semaphore.inUse, (await limiter.peek('k')).remaining]).toEqual([0, remaining])
  })

  /** Asserts that the unit stays charged, without a question of `shouldCharge`. */
  async function expectCharged(): Promise<void> {
    expect(shouldCharge.mock.calls).toHaveLength(0)
    expect((await limiter.peek('k')).remaining).toBe(1)
  }
}

/** Sends a request over HTTP/2 and returns the status of its response, once that has come whole. */
export async function statusOf(session: ClientHttp2Session, path: string): Promise<number | undefined> {
  const stream = session.request({ ':path': path })
  const [headers] = (await once(stream, 'response')) as [{ ':status'?: number }]
  stream.resume()
  await once(stream, 'end')
  return headers[':status']
}

/** Cancels a request, as a browser does whose page is left. */
function reset(stream: ClientHttp2Stream): void {
  stream.close(constants.NGHTTP2_CANCEL)
}

/** Resolves when the next response is over, sent or not, and its listeners have run. */
async function nextResponse({ server }: Http2Site): Promise<void> {
  const [, response] = (await once(server, 'request')) as [unknown, NodeJS.EventEmitter]
  await once(response, 'close')
  await turn()
}
