import { Delivery, type Relay } from './delivery.js'
import { type OutboundOptions, type Settings, settingsOf } from './options.js'
import type { Dispatch, DispatchOptions, Handler } from './undici-request.js'

/**
 * An interceptor of undici 7 or later whose requests wait for their turn, and that obeys what the other side answers:
 * `new Agent().compose(limitUndici(options))`. Requests fail with `RateLimitExceededError` where there is no turn
 * within `maxWait`. undici does not report `close()` to interceptors: a request that waits then fails at its turn, as
 * undici fails what comes after the end. Where such requests are to go out first, give the dispatcher too.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitUndici(options: OutboundOptions): Interceptor
/**
 * The same dispatcher with a limit: `limitUndici(new Agent(), options)`. Its `close()` lets the requests that wait go
 * out first, and `destroy()` fails them, as with the dispatcher alone.
 */
export function limitUndici<D extends Dispatcher>(dispatcher: D, options: OutboundOptions): D
export function limitUndici<D extends Dispatcher>(
  first: D | OutboundOptions,
  options?: OutboundOptions,
): D | Interceptor {
  const relay = new DispatcherRelay(settingsOf(options ?? (first as OutboundOptions)))
  return options ? withEnd(first as D, relay) : relay.interceptor
}

interface Dispatcher {
  compose(...interceptors: never[]): unknown
  close(): Promise<void>
  destroy(error?: Error | null): Promise<void>
}

type Callback = (error: Error | null, data: null) => void

function withEnd<D extends Dispatcher>(dispatcher: D, relay: DispatcherRelay): D {
  const composed = (dispatcher.compose as (interceptor: Interceptor) => D)(relay.interceptor)
  const close = async (): Promise<void> => {
    await relay.close()
    await dispatcher.close()
  }
  const destroy = async (error?: Error | null): Promise<void> => {
    relay.destroy(error ?? endError('Destroyed'))
    await dispatcher.destroy(error)
  }
  const ends: Record<PropertyKey, unknown> = {
    close: (callback?: Callback) => calledBack(close(), callback),
    destroy: (error?: Error | Callback | null, callback?: Callback) =>
      typeof error === 'function' ? calledBack(destroy(), error) : calledBack(destroy(error), callback),
  }
  return new Proxy(composed, { get: (target, key) => ends[key] ?? target[key as keyof D] })
}

function calledBack(ended: Promise<void>, callback: Callback | undefined): Promise<void> | undefined {
  if (!callback) return ended
  void report(ended, callback)
  return undefined
}

async function report(ended: Promise<void>, callback: Callback): Promise<void> {
  let failure: Error | null = null
  try {
    await ended
  } catch (error) {
    failure = error as Error
  }
  callback(failure, null)
}

/** The error that undici fails a request with whose dispatcher has ended. */
function endError(how: 'Closed' | 'Destroyed'): Error {
  const error = new Error(`The client is ${how.toLowerCase()}`)
  return Object.assign(error, { name: `Client${how}Error`, code: `UND_ERR_${how.toUpperCase()}` })
}

class DispatcherRelay implements Relay {
  readonly settings: Settings
  ended: Error | undefined

  constructor(settings: Settings) {
    this.settings = settings
  }

  get interceptor(): Interceptor {
    return (dispatch) => {
      const send = dispatch as unknown as Dispatch
      const limited = (request: DispatchOptions, handler: Handler): boolean => {
        new Delivery(this, send, request, handler).begin()
        return true
      }
      return limited as unknown as typeof dispatch
    }
  }

  /** Resolves when all requests have been answered. */
  async close(): Promise<void> {
    this.ended ??= endError('Closed')
    await this.settings.queue.onIdle()
  }

  destroy(error: Error): void {
    this.ended = error
    this.settings.queue.refuseAll(() => error)
  }
}

type Interceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D
