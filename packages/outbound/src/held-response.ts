import { LONGEST_MS, MOST_BYTES, parsed } from './other-side/json.js'
import type { RequestController } from './relay-controller.js'

/**
 * A response of which undici reports more before it is known whether the handler is to see it, with its body for that
 * question.
 */
export class HeldResponse {
  readonly #held: (() => void)[] = []
  readonly #chunks: Uint8Array[] = []
  #bytes = 0
  hasEnded = false
  #resolve!: (body: unknown) => void
  readonly #body = new Promise<unknown>((resolve) => (this.#resolve = resolve))
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(readonly controller: RequestController) {}

  /**
   * The body as JSON, once it is complete (`end`); undefined if it is none, is larger than 64 KiB or takes longer than a second.
   */
  json(): Promise<unknown> {
    this.#timer ??= setTimeout(() => this.#resolve(undefined), LONGEST_MS)
    return this.#body
  }

  /**
   * Keeps a piece of the body, which has to be read before it is known whether the handler is to see the response. `release`
   * later calls `passOn`, which hands the piece to the handler, or drops it if the request is sent again. A body of more than
   * 64 KiB is not read as JSON (`json` resolves with undefined), and undici is asked to fetch no more of it until `release`.
   */
  data(chunk: Uint8Array, passOn: () => void): void {
    this.#held.push(passOn)
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes <= MOST_BYTES) return
    this.controller.pause()
    this.#resolve(undefined)
  }

  /** Notes that the body is complete, and parses it for `json()`. `passOn` reports the end to the handler, later. */
  end(passOn: () => void): void {
    this.hasEnded = true
    this.#held.push(passOn)
    this.#resolve(parsed(Buffer.concat(this.#chunks)))
  }

  /**
   * Calls what was kept of the response, in its order, once it is known whether the handler is to see it: each piece then goes to
   * the handler, or is dropped if the request is sent again. A body of more than 64 KiB was paused in `data`; its rest is fetched
   * from now on.
   */
  release(): void {
    clearTimeout(this.#timer)
    for (const passOn of this.#held) passOn()
    if (this.#bytes > MOST_BYTES) this.controller.resume()
  }
}
