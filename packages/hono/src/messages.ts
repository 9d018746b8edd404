import type { Decision } from '@sluice/core'
import { checkNames, readOne } from '@sluice/core/internal'
import {
  addressesOf,
  closeUnread,
  createGuard,
  type Denied,
  REQUEST_LIMIT,
  type RequestLimitOptions,
  keepAddresses,
  maxBuffered,
  type Platform,
} from '@sluice/http'
import type { Context } from 'hono'
import type { WSContext, WSEvents } from 'hono/ws'
import { type AddressOptions, platformFor } from './platform.js'

/** A WebSocket message that a client sent. */
export interface Message {
  /** The context of the request that opened the connection. */
  readonly c: Context
  readonly event: MessageEvent
  readonly ws: WSContext
}

/** Callbacks get a message in place of both request and response. */
export interface MessageLimitOptions
  extends Omit<RequestLimitOptions<Message, Message>, ForResponses>, AddressOptions {
  /**
   * The most bytes that may wait for a client to read them, 0 to 2^30. With more, a message beyond the limit closes the
   * connection, and `onDenied` is not called: a client that sends and never reads would fill the memory with its answers.
   * @default 1_048_576
   */
  readonly maxBuffered?: number
}

type ForResponses = 'headers' | 'headerNames' | 'resetAs' | 'shouldCharge'

type CreateEvents = (c: Context) => WSEvents | Promise<WSEvents>

/**
 * Limits the messages of WebSocket connections, by default per client address. A message beyond the limit does not reach
 * `onMessage`, and its connection is closed with the status 1008; `onDenied` answers in place of that. Messages keep their
 * order. If a message that waits for a store fails, its connection is closed with 1011, and the error is a warning.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * const limit = limitMessages({ limit: 10, window: '1s', connInfo: getConnInfo })
 * app.get('/ws', upgradeWebSocket(limit(() => ({ onMessage: (event, ws) => ws.send('pong') }))))
 */
export function limitMessages(options: MessageLimitOptions): (createEvents: CreateEvents) => CreateEvents {
  const { connInfo: _connInfo, trustProxy: _trustProxy, maxBuffered: most, ...rest } = { ...options }
  checkNames(MESSAGES, rest, { what: 'limitMessages' })
  const mostUnread = readOne(maxBuffered, most, 'maxBuffered', { what: 'limitMessages' })
  const decisions = new WeakMap<Message, Decision>()
  const request = platformFor({ ...options })
  const platform = messagePlatform(request, decisions)
  const guard = createGuard<Message, Message>({ ...rest, headers: false }, platform)

  function refuse(message: Message, { forbidden, hungUp }: Denied): unknown {
    if (hungUp) return undefined
    const decision = decisions.get(message)
    const isAnswered = decision && rest.onDenied && !closeUnread(message.ws.raw ?? {}, mostUnread)
    if (isAnswered) return rest.onDenied!(message, message, decision)
    return message.ws.close(1008, forbidden ? 'Forbidden' : 'Too Many Requests')
  }

  function fail({ ws }: Message, error: unknown): void {
    guard.limiter.warn('MESSAGE_FAILED', `a message failed, and its connection was closed: ${String(error)}`)
    ws.close(1011, 'Internal Error')
  }

  return (createEvents) => async (c) => {
    // Bun has forgotten the address when the first message comes.
    keepAddresses(c, request)
    const events = await createEvents(c)
    /** Settled when the latest message of this connection that had to wait is no longer waiting. */
    let last: Promise<void> | undefined
    const onMessage = (event: MessageEvent, ws: WSContext): unknown => {
      const message = { c, event, ws }
      const proceed = (denied: Denied | undefined): unknown =>
        denied ? refuse(message, denied) : events.onMessage?.(event, ws)
      const denied = guard(message, message)
      if (!last && !(denied instanceof Promise)) return proceed(denied)
      const handle = async (decided: PromiseSettledResult<Denied | undefined>): Promise<void> => {
        try {
          if (decided.status === 'rejected') throw decided.reason
          await proceed(decided.value)
        } catch (error) {
          fail(message, error)
        }
      }
      const current = Promise.allSettled([denied, last]).then(([decided]) => {
        if (last === current) last = undefined
        // Not returned, because a handler that never ends would keep later messages from being refused.
        void handle(decided)
      })
      last = current
      return current
    }
    return { ...events, onMessage: (event, ws) => void onMessage(event, ws) }
  }
}

/** A message has no response: it has no headers, and cannot be charged by its outcome. */
const {
  headers: _headers,
  headerNames: _names,
  resetAs: _resetAs,
  shouldCharge: _charge,
  ...MESSAGES
} = REQUEST_LIMIT

/** A message has no response: nothing is set or sent by the guard. */
function messagePlatform(
  request: Platform<Context, Context>,
  decisions: WeakMap<Message, Decision>,
): Platform<Message, Message> {
  return {
    identity: (message) => message,
    address: ({ c }) => addressesOf(c, request).address,
    socketAddress: ({ c }) => addressesOf(c, request).socketAddress,
    hungUp: ({ c }) => addressesOf(c, request).hungUp,
    header: ({ c }, name) => request.header(c, name),
    proxyTrust: ({ c }) => request.proxyTrust(c),
    decided: (message, decision) => void decisions.set(message, decision),
    headersSent: () => true,
    setHeader: () => undefined,
    setStatus: () => undefined,
    send: () => undefined,
    onFinished: () => undefined,
    handlerFrame: request.handlerFrame,
  }
}
