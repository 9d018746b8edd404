import { LONGEST_MS, MOST_BYTES, parsed } from './other-side/json.js'
import type { RequestController } from './relay-controller.js'

/** A response of which undici reports more before it is known whether the handler is to see it, with its body for that question. */
export class HeldResponse {
  readonly #reports: (() => void)[] = []
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  hasEnded = false
  #resolve!: (body: unknown) => void
  readonly #body = new Promise<unknown>((resolve) => (this.#resolve = resolve))
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(readonly controller: RequestController) {}

  /** The body as JSON; undefined if it is none, is larger than 64 kB or takes longer than a second. */
  json(): Promise<unknown> {
    this.#timer ??= setTimeout(() => this.#resolve(undefined), LONGEST_MS)
    return this.#body
  }

  /** Keeps a part of the body, to be passed on by `report` later. A body that is too large is not read as JSON. */
  data(chunk: Uint8Array, report: () => void): void {
    this.#reports.push(report)
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes <= MOST_BYTES) return
    this.controller.pause()
    this.#resolve(undefined)
  }

  /** Resolves the JSON with the whole body. `report` passes the end on later. */
  end(report: () => void): void {
    this.hasEnded = true
    this.#reports.push(report)
    this.#resolve(parsed(Buffer.concat(this.#chunks)))
  }

  /** Passes the held parts of the response on, in their order. */
  release(): void {
    clearTimeout(this.#timer)
    for (const report of this.#reports) report()
    if (this.#bytes > MOST_BYTES) this.controller.resume()
  }
}
