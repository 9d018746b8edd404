import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface OtherParty {
  readonly origin: string
  /** Requests in the order in which they came, with the time on the clock of `performance.now()`. */
  readonly arrived: readonly { readonly at: number; readonly method: string; readonly body: string }[]
  /** Most requests that were under way at once. */
  readonly mostAtOnce: number
  close(): void
}

/** A server on loopback. `answer` gets the number of the request, counted from 1, once its body is there. */
export async function startOtherParty(
  answer: (n: number, res: ServerResponse, req: IncomingMessage) => void,
): Promise<OtherParty> {
  const arrived: { at: number; method: string; body: string }[] = []
  let now = 0
  let most = 0
  const server = createServer((req, res) => {
    const entry = { at: performance.now(), method: req.method!, body: '' }
    const n = arrived.push(entry)
    most = Math.max(most, ++now)
    res.once('close', () => now--)
    req.setEncoding('utf8').on('data', (text: string) => (entry.body += text))
    req.once('end', () => answer(n, res, req))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived,
    get mostAtOnce() {
      return most
    },
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
