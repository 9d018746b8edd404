import { isResendable } from './body.js'
import type { Call, Reply } from './call.js'
import { remember } from './decision-of.js'
import { Gate } from './gate.js'
import type { OutboundOptions } from './options.js'

/** The parts of axios that are used, whatever its version. */
interface Config {
  readonly url?: string
  readonly baseURL?: string
  readonly method?: string
  readonly headers?: unknown
  readonly data?: unknown
  readonly signal?: unknown
}

interface AxiosReply {
  readonly status: number
  readonly headers: unknown
  readonly data: unknown
}

/**
 * An adapter of axios whose calls wait for their turn, and that obeys what the other side answers:
 * `axios.create({ adapter: limitAdapter(axios.getAdapter('http'), options) })`. It rejects with `RateLimitExceededError`
 * where there is no turn within `maxWait`, and else as the adapter does that it is made from.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitAdapter<A extends (config: never) => Promise<unknown>>(
  adapter: A,
  options: OutboundOptions,
): A {
  const gate = new Gate(options)
  const limited = async (config: Config): Promise<AxiosReply> => {
    const visit = gate.visit(
      callOf(config),
      isResendable(config.data),
      config.signal as AbortSignal | undefined,
    )
    for (;;) {
      const turn = await visit.turn()
      const { reply, failure } = await outcome(adapter(config as never) as Promise<AxiosReply>)
      const again = reply !== undefined && visit.heed(replyOf(reply))
      if (!again && reply) remember(reply, turn.decision)
      const rest = streamIn(reply)
      if (again) rest?.destroy()
      if (rest) rest.once('close', turn.release)
      else turn.release()
      if (again) continue
      if (failure) throw failure
      return reply!
    }
  }
  return limited as unknown as A
}

/** axios rejects for a status that `validateStatus` refuses, with the response in the error. */
async function outcome(sent: Promise<AxiosReply>): Promise<{ reply?: AxiosReply; failure?: Error }> {
  try {
    return { reply: await sent }
  } catch (failure) {
    const error = failure as Error & { readonly response?: AxiosReply }
    return error.response ? { reply: error.response, failure: error } : { failure: error }
  }
}

function callOf({ url = '', baseURL, method = 'get', headers }: Config): Call {
  return {
    url: new URL(url, baseURL),
    method: method.toUpperCase(),
    header: (name) => headerOf(headers, name),
  }
}

function replyOf({ status, headers }: AxiosReply): Reply {
  return { status, header: (name) => headerOf(headers, name) }
}

function headerOf(headers: unknown, name: string): string | undefined {
  const { get } = (headers ?? {}) as { get?: (name: string) => unknown }
  const value =
    typeof get === 'function' ? get.call(headers, name) : (headers as Record<string, unknown>)?.[name]
  return typeof value === 'number' ? String(value) : typeof value === 'string' ? value : undefined
}

interface Stream {
  once(event: 'close', listener: () => void): unknown
  destroy(): void
  readonly destroyed?: boolean
}

/** With `responseType: 'stream'` the call is under way until the stream closes. */
function streamIn(reply: AxiosReply | undefined): Stream | undefined {
  const data = reply?.data as Partial<Stream> | null | undefined
  const isStream = typeof data?.once === 'function' && typeof data.destroy === 'function' && !data.destroyed
  return isStream ? (data as Stream) : undefined
}
