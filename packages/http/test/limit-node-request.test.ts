import { createLimiter, slidingLog } from '@sluice/core'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { limitedListener, limitNodeRequest } from '../src/index.js'

type NodeListener = (req: IncomingMessage, res: ServerResponse) => unknown

describe('limitedListener', () => {
  it('serves as many requests as the limit admits', async () => {
    const handled = jest.fn((_req, res) => res.end('served'))
    const statuses = await statusesOf(limitedListener(handled, { limit: 2, window: '1m' }), 3)
    expect([statuses, handled.mock.calls.length]).toEqual([[200, 200, 429], 2])
  })

  it('answers 500 and warns where a request cannot be counted, and serves the next', async () => {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 9, window: '1m' })] })
    const warnings: string[] = []
    limiter.on('warning', ({ code, message }) => void warnings.push(`${code}: ${message}`))
    const key = jest.fn(() => 'k').mockImplementationOnce(() => fail())
    const listener = limitedListener((_req, res) => res.end('served'), { limiter, key })
    expect(await statusesOf(listener, 2)).toEqual([500, 200])
    expect(warnings).toEqual([
      'REQUEST_FAILED: a request was not counted and answered 500: Error: no session',
    ])
  })

  it('leaves errors of the listener to the server', async () => {
    const listener = limitedListener(() => fail(), { limit: 9, window: '1m', key: () => 'k' })
    await expect(listener({ socket: {}, headers: {} } as never, headless())).rejects.toThrow('no session')
  })
})

describe('limitNodeRequest', () => {
  it('reads X-Forwarded-For where a number of proxies is given', async () => {
    const mayPass = limitNodeRequest({ limit: 1, window: '1m', trustProxy: 1 })
    const listener: NodeListener = async (req, res) => (await mayPass(req, res)) && res.end('served')
    const from = (address: string) => ({ 'X-Forwarded-For': `203.0.113.9, ${address}` })
    const headers = [from('192.0.2.1'), from('192.0.2.2'), from('192.0.2.1')]
    expect(await statusesOf(listener, 3, headers)).toEqual([200, 200, 429])
  })
})

/** The statuses of requests that are sent one after another to a server of this listener. */
async function statusesOf(
  listener: NodeListener,
  count: number,
  headers: readonly Record<string, string>[] = [],
): Promise<number[]> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const statuses: number[] = []
    for (let i = 0; i < count; i++) {
      const response = await fetch(`http://127.0.0.1:${port}/`, { headers: headers[i] ?? {} })
      statuses.push(response.status)
      await response.text()
    }
    return statuses
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

function headless() {
  return { headersSent: false, setHeader: () => {}, once: () => {} } as never
}

function fail(): never {
  throw new Error('no session')
}
