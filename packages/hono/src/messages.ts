import { checkNames, isPromise, readOption } from '@sluice/core/internal'
import {
  addressesOf,
  closeUnread,
  createGuard,
  decisionAbout,
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

/** A message has no response: it has no headers, cannot be charged by its outcome, and holds nothing up. */
const FOR_RESPONSES = ['headers', 'headerNames', 'resetAs', 'shouldCharge', 'maxWait', 'maxWaiting'] as const

type ForResponses = (typeof FOR_RESPONSES)[number]

type CreateEvents = (c: Context) => WSEvents | Promise<WSEvents>

/**
 * Limits the messages of WebSocket connections, by default per client address. A message beyond the limit does not reach
 * `onMessage`, and its connection is closed with the status 1008; `onDenied` answers in place of that. Messages keep their
 * order. If a handler fails after `onMessage` has returned, its connection is closed with 1011, and the error is a warning.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * const limit = limitMessages({ limit: 10, window: '1s', connInfo: getConnInfo })
 * app.get('/ws', upgradeWebSocket(limit(() => ({ onMessage: (event, ws) => ws.send('pong') }))))
 */
export function limitMessages(options: MessageLimitOptions): (createEvents: CreateEvents) => CreateEvents {
  const { connInfo, trustProxy, maxBuffered: most, ...limit } = { ...options }
  const request = platformFor({ connInfo, trustProxy }, limit)
  checkNames(MESSAGES, limit, { what: 'limitMessages' })
  const mostUnread = readOption(maxBuffered, most, 'maxBuffered', { what: 'limitMessages' })
  const guard = createGuard<Message, Message>({ ...limit, headers: false }, messagePlatform(request))

  /** Answers a message that may not pass: by `onDenied`, or by closing the connection with the status 1008. */
  function refuse(message: Message, { forbidden, hungUp }: Denied): unknown {
    if (hungUp) return undefined
    const decision = decisionAbout(message) // none about a caller on the list `deny`
    const { onDenied } = limit
    // `closeUnread` closes the connection, and returns true, if the client leaves more bytes unread than `maxBuffered` allows.
    if (decision && onDenied && !closeUnread(message.ws.raw ?? {}, mostUnread)) {
      return onDenied(message, message, decision)
    }
    return message.ws.close(1008, forbidden ? 'Forbidden' : 'Too Many Requests')
  }

  /** Closes the connection and warns if the handling of a message, whose result or promise is `handled`, fails. */
  function closeIfFailed(handled: unknown, ws: WSContext): void {
    const fail = (error: unknown): void => {
      const message = `a message failed, and its connection was closed: ${String(error)}`
      guard.limiter.warn('MESSAGE_FAILED', message)
      ws.close(1011, 'Internal Error')
    }
    Promise.resolve(handled)
      .catch(fail)
      .catch(() => {})
  }

  /** Puts the limit before the handlers of one connection: `onMessage` counts a message, and then handles or refuses it. */
  function limitedEvents(events: WSEvents, c: Context): WSEvents {
    /** Of the latest message of this connection that waits for its decision: fulfilled as soon as its handling or refusal begins. */
    let latestWaiting: Promise<void> | undefined
    const onMessage = (event: MessageEvent, ws: WSContext): void => {
      const message = { c, event, ws }
      const handleOrRefuse = (denied: Denied | undefined): unknown =>
        denied ? refuse(message, denied) : events.onMessage?.(event, ws)
      const denied = guard(message, message) // Platforms have a request and a response; a message is both.
      const isDecidedNow = !isPromise(denied)
      if (isDecidedNow && !latestWaiting) {
        const handled = handleOrRefuse(denied)
        if (isPromise(handled)) closeIfFailed(handled, ws)
        return
      }
      // Messages keep their order: this one waits for its decision, and for the messages that came before it.
      const waiting = Promise.allSettled([denied, latestWaiting]).then(() => {
        if (latestWaiting === waiting) latestWaiting = undefined
        // Not awaited: a handler that never ends would keep later messages from being refused.
        closeIfFailed(Promise.resolve(denied).then(handleOrRefuse), ws)
      })
      latestWaiting = waiting
    }
    /** Calls the application's `onClose` after every message that came before the end. */
    const onClose: WSEvents['onClose'] = (event, ws) => {
      const close = (): void => events.onClose?.(event, ws)
      if (latestWaiting) closeIfFailed(latestWaiting.then(close), ws)
      else close()
    }
    return { ...events, onMessage, ...(events.onClose && { onClose }) }
  }

  return (createEvents) => async (c) => {
    // Bun has forgotten the address when the first message comes.
    keepAddresses(c, request)
    return limitedEvents(await createEvents(c), c)
  }
}

const MESSAGES = Object.fromEntries(
  Object.entries(REQUEST_LIMIT).filter(([name]) => !(FOR_RESPONSES as readonly string[]).includes(name)),
)

/**
 * The platform of messages. Addresses and headers are those of the request that opened the connection, as the platform
 * `request` reads them. A message has no response, so the guard's steps that set or send something do nothing;
 * `limitMessages` answers in their place.
 */
function messagePlatform(request: Platform<Context, Context>): Platform<Message, Message> {
  return {
    identity: (message) => message,
    address: ({ c }) => addressesOf(c, request).address,
    socketAddress: ({ c }) => addressesOf(c, request).socketAddress,
    hungUp: ({ c }) => addressesOf(c, request).hungUp,
    method: ({ c }) => request.method(c),
    url: ({ c }) => request.url(c),
    header: ({ c }, name) => request.header(c, name),
    headersSent: () => true,
    setHeader: () => undefined,
    setStatus: () => undefined,
    send: () => undefined,
    onFinished: () => undefined,
    proxySetting: request.proxySetting,
    handlerFrame: request.handlerFrame,
  }
}
