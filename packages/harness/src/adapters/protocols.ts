import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { connect, type Server, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Served } from './adapter.js'
import { listening } from './listening.js'

/** The protocols by which one application is served. */
export const PROTOCOLS = ['HTTP/1.1', 'HTTP/1.1 over TLS', 'HTTP/2'] as const
export type Protocol = (typeof PROTOCOLS)[number]

/** A shared key, as both ends are ours: no certificate has to be made, and handshakes take less time. */
const CIPHERS = { ciphers: 'PSK', maxVersion: 'TLSv1.2' } as const
const KEY = Buffer.alloc(16, 1)
/** Made once: that takes longer than a handshake. */
const CLIENT = createSecureContext(CIPHERS)
const SERVER: TlsOptions = { ...CIPHERS, pskCallback: () => KEY }

/** Serves what answers the requests of `app` over a protocol, until the result is closed. */
export async function serveOver(protocol: Protocol, app: Served): Promise<{ server: Server } & Closable> {
  if (protocol === 'HTTP/1.1') return { server: app.server, close: () => Promise.resolve() }
  const listener = listenerOf(app)
  if (protocol === 'HTTP/1.1 over TLS') {
    return listening(createHttpsServer(SERVER, listener).listen(0, '127.0.0.1'))
  }
  const server = createHttp2Server(listener as never).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, close: () => new Promise((resolve) => void server.close(() => resolve())) }
}

interface Closable {
  close(): Promise<void>
}

/** The function that an application answers requests with, whatever server they come from. */
export function listenerOf({ server }: Served): RequestListener {
  return server.listeners('request')[0] as RequestListener
}

/** Secures a client's connection to a test server by TLS. */
export function secured(socket: NodeJS.ReadWriteStream): TLSSocket {
  return connectTls({
    secureContext: CLIENT,
    socket: socket as Socket,
    pskCallback: () => ({ psk: KEY, identity: 'client' }),
    checkServerIdentity: () => undefined,
  })
}

/** Sends a GET on a new connection, resets that as soon as it is written, and resolves when it is closed. */
export function sendAndReset(protocol: Protocol, port: number, path: string): Promise<void> {
  const sent = protocol === 'HTTP/2' ? http2Request(path) : `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
  const socket = connect(port, '127.0.0.1')
  const stream = protocol === 'HTTP/1.1 over TLS' ? secured(socket) : socket
  const connected = stream === socket ? 'connect' : 'secureConnect'
  stream.once(connected, () => stream.write(sent, () => void socket.resetAndDestroy()))
  return new Promise((resolve, reject) => {
    stream.on('error', reject)
    socket.on('error', reject).once('close', () => resolve())
  })
}

/** The preface, empty settings, and a frame of headers (RFC 9113). */
function http2Request(path: string): Buffer {
  const [HEADERS, SETTINGS, END_STREAM_AND_HEADERS] = [1, 4, 5]
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  const settings = frame(SETTINGS, 0, 0, Buffer.alloc(0))
  return Buffer.concat([preface, settings, frame(HEADERS, END_STREAM_AND_HEADERS, 1, headersOf(path))])
}

/** A frame of HTTP/2: nine bytes with its length, type, flags and stream, then the payload. */
function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** `:method: GET` and `:scheme: http` by their numbers in the static table of RFC 7541, `:authority` and `:path` by name. */
function headersOf(path: string): Buffer {
  const literal = (index: number, value: string): Buffer =>
    Buffer.concat([Buffer.from([index, value.length]), Buffer.from(value)])
  return Buffer.concat([Buffer.from([0x82, 0x86]), literal(1, 'localhost'), literal(4, path)])
}
