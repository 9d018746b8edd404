// A request to a server without a socket: Node's own request and response objects, given to the server's handler as its
// parser would give them. What is left out is the kernel, the parser and the event loop's waiting, the same for everyone.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'

/** @typedef {import('node:http').Server} Server */

/** The headers that every client sends. */
const HEADERS = ['Host', '127.0.0.1:3000', 'User-Agent', 'bench', 'Accept', '*/*', 'Connection', 'keep-alive']

/** The other end of a connection, which stays open. */
class Caller extends Duplex {
  remoteAddress = '127.0.0.1'
  remoteFamily = 'IPv4'
  /** The texts that were written, where a caller wants to read them. @type {string[] | undefined} */
  written = undefined

  constructor() {
    super({ decodeStrings: false }) // as sockets, which write strings as they are
  }

  /** A server bounds how long a connection may be idle. */
  setTimeout() {
    return this
  }

  /** @override */
  _read() {}

  /**
   * @override
   * @param {Buffer | string} chunk
   * @param {string} _encoding
   * @param {() => void} done
   */
  _write(chunk, _encoding, done) {
    this.written?.push(chunk.toString())
    done()
  }
}

/**
 * One caller of a server.
 * @param {Server} server
 */
export function callerOf(server) {
  const caller = new Caller()
  const socket = /** @type {import('node:net').Socket} */ (/** @type {unknown} */ (caller))

  /** Makes a request; resolves to the status when all of the response is written. @returns {Promise<number>} */
  const request = () =>
    new Promise((resolve) => {
      const req = requestOn(socket)
      const res = new ServerResponse(req)
      res.shouldKeepAlive = true
      res.assignSocket(socket)
      res.once('finish', () => {
        res.detachSocket(socket)
        res.emit('close')
        resolve(res.statusCode)
      })
      server.emit('request', req, res)
    })

  /** A request, and the response as it would go over the wire. */
  const exchange = async () => {
    caller.written = []
    const status = await request()
    const [head = '', ...body] = caller.written.join('').split('\r\n\r\n')
    caller.written = undefined
    return { status, head, body: body.join('\r\n\r\n') }
  }
  return { request, exchange }
}

/** @param {import('node:net').Socket} socket */
function requestOn(socket) {
  const req = new IncomingMessage(socket)
  req.method = 'GET'
  req.url = '/'
  req.httpVersion = '1.1'
  req.httpVersionMajor = 1
  req.httpVersionMinor = 1
  // As Node's parser adds them: they become an object where one asks for it.
  const parsed = /** @type {IncomingMessage & { _addHeaderLines(lines: string[], count: number): void }} */ (
    req
  )
  parsed._addHeaderLines([...HEADERS], HEADERS.length)
  req.complete = true
  req.push(null)
  return req
}
