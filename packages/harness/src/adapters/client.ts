import { type Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

export interface Sent {
  readonly method?: string
  /** Sent as it stands. `fetch` and supertest would resolve '/./login' and drop '#x'. */
  readonly path?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string
  /** Default: a connection of its own. */
  readonly agent?: Agent
}

export interface Reply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Sends one request and reads the whole response. Rejects when that breaks off. */
export async function send(port: number, sent: Sent): Promise<Reply> {
  const { body, ...rest } = sent
  const req = request({ host: '127.0.0.1', port, agent: false, ...rest }).end(body)
  const [res] = await once(req, 'response')
  return { status: res.statusCode, headers: res.headers, text: await text(res) }
}

/** Opens a connection to a port and writes requests as they are, without an HTTP client. Returns the socket. */
export function sendRaw(port: number, requests: string): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.write(requests)
  return socket
}

export const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
export const LAST_GET = 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
