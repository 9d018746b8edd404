import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const LIMIT = 200
const WINDOW_MS = 10_000
const LATENCY_MS = 60
const OUT_OF_ORDER_MS = 1500

/** Another company's service, which knows nothing of Sluice: it keeps a log of instants and answers 429 above its limit. */
export class Provider {
  /** How often each payment was made, by its Idempotency-Key. */
  readonly paid = new Map<string, number>()
  tooMany = 0
  /** Calls refused because the provider was out of order. */
  outOfOrder = 0
  mostAtOnce = 0
  #accepted: number[] = []
  #atOnce = 0
  #brokenUntil = 0
  readonly #server = createServer((req, res) => this.#answer(req, res))

  /** Begins to listen on a free port. Resolves with the address, such as `http://127.0.0.1:4711`. */
  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Answers 503 with Retry-After for a second and a half. */
  breakDown(): void {
    this.#brokenUntil = performance.now() + OUT_OF_ORDER_MS
  }

  /** Ends the server with all its connections. */
  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /** Answers 503 while out of order, 429 above the limit, both with Retry-After; otherwise 201 after a moment. */
  #answer(req: IncomingMessage, res: ServerResponse): void {
    req.resume()
    const now = performance.now()
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    res.once('close', () => this.#atOnce--)
    this.#accepted = this.#accepted.filter((at) => at > now - WINDOW_MS)
    if (now < this.#brokenUntil) {
      this.outOfOrder++
      res.writeHead(503, { 'Retry-After': Math.ceil((this.#brokenUntil - now) / 1000) }).end()
    } else if (this.#accepted.length >= LIMIT) {
      this.tooMany++
      res.writeHead(429, { 'Retry-After': 1 }).end()
    } else {
      this.#accepted.push(now)
      const id = String(req.headers['idempotency-key'])
      this.paid.set(id, (this.paid.get(id) ?? 0) + 1)
      setTimeout(() => res.writeHead(201).end('{"paid":true}'), LATENCY_MS)
    }
  }
}
