import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The limits of the provider, by its own count. */
export const theirs = { limit: 200, windowMs: 10_000, latencyMs: 60 }

/** How long it is out of order. */
export const OUT_OF_ORDER_MS = 1500

/** Another company's service, which knows nothing of Sluice: it keeps a log of instants and answers 429 above its limit. */
export class Provider {
  /** Instants of all calls, on the clock of `performance.now()`. */
  readonly arrivals: number[] = []
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

  /** Answers 503 with Retry-After for OUT_OF_ORDER_MS. */
  breakDown(): void {
    this.#brokenUntil = performance.now() + OUT_OF_ORDER_MS
  }

  /** Whether it has been out of order at any time. */
  get hasBroken(): boolean {
    return this.#brokenUntil > 0
  }

  /** Whether it is out of order now. */
  get broken(): boolean {
    return performance.now() < this.#brokenUntil
  }

  /** The calls that are under way now. */
  get atOnce(): number {
    return this.#atOnce
  }

  /** The calls that arrived within the last window, refused ones included. */
  get callsInWindow(): number {
    const since = performance.now() - theirs.windowMs
    let first = this.arrivals.length
    while (first > 0 && this.arrivals[first - 1]! > since) first--
    return this.arrivals.length - first
  }

  /** Ends the server with all its connections. */
  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }

  /**
   * Answers a call: 503 while the provider is out of order, 429 above its limit, both with Retry-After; otherwise 201 after a moment,
   * and the payment is counted under its Idempotency-Key.
   */
  #answer(req: IncomingMessage, res: ServerResponse): void {
    req.resume()
    const now = performance.now()
    this.arrivals.push(now)
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.#atOnce)
    res.once('close', () => this.#atOnce--)
    this.#accepted = this.#accepted.filter((at) => at > now - theirs.windowMs)
    if (this.broken) {
      this.outOfOrder++
      res.writeHead(503, { 'Retry-After': Math.ceil((this.#brokenUntil - now) / 1000) }).end()
    } else if (this.#accepted.length >= theirs.limit) {
      this.tooMany++
      res.writeHead(429, { 'Retry-After': 1 }).end()
    } else {
      this.#accepted.push(now)
      const id = String(req.headers['idempotency-key'])
      this.paid.set(id, (this.paid.get(id) ?? 0) + 1)
      setTimeout(() => res.writeHead(201).end('{"paid":true}'), theirs.latencyMs)
    }
  }
}
