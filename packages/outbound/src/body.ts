/**
 * Whether a body can be sent more than once: a stream cannot, as it can be read only once. Objects are known by the names of
 * their classes, so those of other implementations than Node's count too.
 */
export function isResendable(body: unknown): boolean {
  if (body === undefined || body === null || typeof body === 'string' || ArrayBuffer.isView(body)) return true
  // npm's `form-data` calls itself FormData and is a stream.
  if (typeof (body as { pipe?: unknown }).pipe === 'function') return false
  return RESENDABLE.has(Object.prototype.toString.call(body))
}

const RESENDABLE = new Set(
  ['ArrayBuffer', 'URLSearchParams', 'Blob', 'File', 'FormData'].map((name) => `[object ${name}]`),
)

/** Keeps up to 64 KiB of the body of a `Request`, which can be read only once, so that it can be sent again. */
export class KeptBody {
  /** The whole body, once it has been read. */
  bytes: Uint8Array | undefined
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>

  /**
   * Begins to read the body, a copy of the one that is sent, at once: it has to be kept before the request is sent again. If
   * reading it fails, `bytes` stays undefined, and the request cannot be sent again.
   */
  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader()
    this.#read().catch(() => {})
  }

  /** Stops reading the body. */
  drop(): void {
    Promise.resolve(this.#reader.cancel()).catch(() => {})
  }

  /**
   * Reads the whole body into `bytes`, by which a retry sends it again. They stay undefined until all of it has arrived, and if it has
   * more than 64 KiB (MOST_KEPT): the rest is then dropped.
   */
  async #read(): Promise<void> {
    const chunks: Uint8Array[] = []
    let size = 0
    while (size <= MOST_KEPT) {
      const { done, value } = await this.#reader.read()
      if (done) return void (this.bytes = Buffer.concat(chunks))
      chunks.push(value)
      size += value.byteLength
    }
    this.drop()
  }
}

const MOST_KEPT = 65_536
