import type { Subscribe } from '../redis-connection.js'

/*
 * A subscribed connection takes no other commands, so a channel has a connection of its own, made like the client that was
 * handed in. Messages that are published while it is broken are lost, so semaphores also poll.
 */

interface IoredisSubscriber {
  on(event: 'error', listener: () => void): unknown
  on(event: 'ready', listener: () => void): unknown
  on(event: 'message', listener: (channel: string, message: string) => void): unknown
  subscribe(channel: string): Promise<unknown>
  disconnect(): void
}

interface IoredisParent {
  readonly isCluster?: boolean
  duplicate(...args: unknown[]): unknown
}

export function ioredisSubscribe(client: object): Subscribe {
  return (channel, receive) => {
    const parent = client as IoredisParent
    // No reply is due on it, so silence is no failure; and it must connect even if its parent is lazy or queues nothing.
    const options = { lazyConnect: false, enableOfflineQueue: true, socketTimeout: undefined }
    const subscriber = parent.duplicate(
      ...(parent.isCluster ? [[], options] : [options]),
    ) as IoredisSubscriber
    subscriber.on('error', ignore)
    subscriber.on('message', (_, message) => receive(message))
    subscriber.on('ready', () => void subscriber.subscribe(channel).catch(ignore))
    return () => subscriber.disconnect()
  }
}

interface NodeRedisSubscriber {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  subscribe(channel: string, receive: (message: string) => void): Promise<unknown>
  destroy(): void
}

/** Undefined for a pool, which cannot subscribe. */
export function nodeRedisSubscribe(client: object): Subscribe | undefined {
  const parent = client as { duplicate?(): unknown; subscribe?: unknown }
  if (typeof parent.duplicate !== 'function' || typeof parent.subscribe !== 'function') return undefined
  return (channel, receive) => {
    const subscriber = parent.duplicate!() as NodeRedisSubscriber
    let ended = false
    const end = (): void => {
      ended = true
      try {
        subscriber.destroy()
      } catch {
        // It was not connected.
      }
    }
    subscriber.on('error', ignore)
    subscriber
      .connect()
      // A client that is ended while it connects first finishes connecting, and then keeps its sockets.
      .then(() => (ended ? end() : subscriber.subscribe(channel, receive)))
      .catch(ignore)
    return end
  }
}

/** Lost messages do no harm, as waiting tickets are also polled. */
function ignore(): void {}
