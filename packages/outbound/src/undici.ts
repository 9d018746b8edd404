import { PolicyError } from '@sluice/core'
import { clientOf, type LimitedClient } from './limited-client.js'
import { checkGiven, type OutboundOptions, type OutboundSettings, settingsOf } from './options.js'
import { RelayedRequest } from './relayed-request.js'
import type { Dispatch, DispatchOptions, Handler } from './undici-request.js'

/**
 * Makes an interceptor for undici 7 or later: `new Agent().compose(limitUndici(options))`. Its requests wait for their turn
 * and obey the limits that replies report. They fail with `RateLimitExceededError` if there is no turn within `maxWait`.
 * undici does not report `close()` to interceptors, so a request that waits then fails at its turn, as undici fails
 * requests to a closed dispatcher. Pass the dispatcher too to have waiting requests sent first.
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitUndici(options: OutboundOptions): Interceptor & LimitedClient
/**
 * Makes a dispatcher with a limit of the given one. `close()` sends the requests that wait first, and `destroy()` fails them,
 * as with the given dispatcher.
 * @example
 * const limiter = createLimiter({ policies: [gcra({ limit: 10, window: '1s', burst: 1 })] })
 * const dispatcher = limitUndici(new Agent(), { limiter })
 * const { body } = await request('https://api.example.com/orders', { dispatcher })
 * @throws {PolicyError} when an option cannot work; see docs/errors.md for the codes.
 */
export function limitUndici<D extends Dispatcher>(dispatcher: D, options: OutboundOptions): D & LimitedClient
/*
 * Both forms: with a dispatcher and options, returns a limited dispatcher; with options alone, an interceptor. Either has the
 * methods of a limited client (`on`, `setPolicies`).
 */
export function limitUndici<D extends Dispatcher>(
  first: D | OutboundOptions,
  options?: OutboundOptions,
): (D | Interceptor) & LimitedClient {
  // Two arguments: a dispatcher with its options. One: the options of an interceptor.
  const isOfTwo = options !== undefined
  const { compose } = (first ?? {}) as Partial<Dispatcher>
  const takes = `limitUndici takes ${isOfTwo ? 'a dispatcher and options' : 'options, after a dispatcher if there is one'}`
  checkGiven((typeof compose === 'function') === isOfTwo, takes, first)
  const settings = settingsOf(options ?? (first as OutboundOptions), 'limitUndici')
  const client = clientOf(settings.queue)
  return options
    ? limitedDispatcher(first as D, settings, client)
    : Object.assign(interceptorOf(settings), client)
}

/**
 * Returns an interceptor of undici: given the function `dispatch`, which sends a request, it returns a function that has the
 * request wait for its turn first. If `ended` returns an error, as after `close`, a new request fails with it.
 */
function interceptorOf(settings: OutboundSettings, ended?: () => Error | undefined): Interceptor {
  return (dispatch) => {
    const send = dispatch as unknown as Dispatch
    /**
     * Takes the place of `dispatch`: begins the wait of a request. The result true tells undici that the dispatcher takes further
     * requests. A handler without `onRequestStart` is one of undici 6, which does not work here.
     */
    const limited = (request: DispatchOptions, handler: Handler): boolean => {
      if (typeof handler.onRequestStart !== 'function') throw tooOld()
      new RelayedRequest(settings, send, request, handler).begin(ended?.())
      return true
    }
    return limited as unknown as typeof dispatch
  }
}

interface Dispatcher {
  compose(...interceptors: never[]): unknown
  close(): Promise<void>
  destroy(error?: Error | null): Promise<void>
}

type Callback = (error: Error | null, data: null) => void

/** The error for a dispatcher of undici 6, whose handlers have other callbacks than those of later versions. */
function tooOld(): PolicyError {
  return new PolicyError(
    'INVALID_OPTION',
    'limitUndici takes a dispatcher of undici 7 or later, got one of undici 6',
  )
}

/**
 * Returns the dispatcher with the interceptor in front, as a proxy that has methods of its own: those of `client`, `close` and
 * `destroy`. Both ends take a callback or return a promise, as undici's do. An `interceptors` property is one of undici 6.
 */
function limitedDispatcher<D extends Dispatcher>(
  dispatcher: D,
  settings: OutboundSettings,
  client: LimitedClient,
): D & LimitedClient {
  if ('interceptors' in dispatcher) throw tooOld()
  let ended: Error | undefined
  const composed = dispatcher.compose(interceptorOf(settings, () => ended) as never) as D
  /**
   * Fails new requests from now on (`ended`), and closes the dispatcher when no request waits or is under way: a closed dispatcher
   * would refuse those that still wait for their turn.
   */
  const close = async (): Promise<void> => {
    ended ??= endError('Closed')
    await settings.queue.onIdle()
    await dispatcher.close()
  }
  /**
   * Fails new requests (`ended`) and those that wait for their turn, with `error` or, without it, with undici's error for a
   * destroyed client. Then the dispatcher fails the requests that were sent; it does not know of those that wait here.
   */
  const destroy = async (error?: Error | null): Promise<void> => {
    const reason = (ended = error ?? endError('Destroyed'))
    settings.queue.refuseAll(() => reason)
    await dispatcher.destroy(error)
  }
  const own: Record<PropertyKey, unknown> = {
    ...client,
    close: (callback?: Callback) => calledBack(close(), callback),
    destroy: (error?: Error | Callback | null, callback?: Callback) =>
      typeof error === 'function' ? calledBack(destroy(), error) : calledBack(destroy(error), callback),
  }
  return new Proxy(composed, { get: (target, key) => own[key] ?? target[key as keyof D] }) as D &
    LimitedClient
}

/**
 * Reports the end of `close` or `destroy` as undici does: returns the promise `ended`; or, with a callback, returns undefined and
 * calls it at the end, with null or the error.
 */
function calledBack(ended: Promise<void>, callback: Callback | undefined): Promise<void> | undefined {
  if (!callback) return ended
  const report = (failure: Error | null): void => callback(failure, null)
  void ended.then(() => report(null), report)
  return undefined
}

/** The error with which undici fails a request to a dispatcher that was closed or destroyed. */
function endError(how: 'Closed' | 'Destroyed'): Error {
  const error = new Error(`The client is ${how.toLowerCase()}`)
  return Object.assign(error, { name: `Client${how}Error`, code: `UND_ERR_${how.toUpperCase()}` })
}

type Interceptor = <D extends (options: never, handler: never) => boolean>(dispatch: D) => D
