/** Whether a body can be sent more than once without being kept: neither a stream nor anything that is read once. */
export function isResendable(body: unknown): boolean {
  return (
    body === undefined ||
    body === null ||
    typeof body === 'string' ||
    ArrayBuffer.isView(body) ||
    RESENDABLE.has(Object.prototype.toString.call(body))
  )
}

const RESENDABLE = new Set(
  ['ArrayBuffer', 'URLSearchParams', 'Blob', 'File', 'FormData'].map((name) => `[object ${name}]`),
)

/**
 * The same response, with `ended` called once when its body has arrived, failed, or is not wanted any more. Up to
 * 64 KiB arrive by themselves, so that a small body that nobody reads has an end too; a large one that nobody reads
 * ends when the response is collected.
 */
export function untilEnd(response: Response, ended: () => void): Response {
  if (!response.body) {
    ended()
    return response
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (!done) return controller.enqueue(value)
          controller.close()
        } catch (error) {
          controller.error(error)
        }
        ended()
      },
      cancel(reason) {
        ended()
        return reader.cancel(reason)
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: READ_AHEAD }),
  )
  const { status, statusText, headers, url, redirected, type } = response
  const Same = response.constructor as typeof Response
  const same = new Same(body, { status, statusText, headers })
  for (const [name, value] of Object.entries({ url, redirected, type })) {
    Object.defineProperty(same, name, { value, configurable: true })
  }
  unread.register(same, ended)
  return same
}

const READ_AHEAD = 65_536
const unread = new FinalizationRegistry<() => void>((ended) => ended())
