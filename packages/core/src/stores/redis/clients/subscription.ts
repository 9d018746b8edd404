/*
 * A channel is heard on a connection of its own, made like the client it belongs to: one that is subscribed takes no
 * other commands. What is published while it is broken is lost, so that nobody may depend on it alone.
 */

/** Hears every message of a channel, until what it returns is called. */
export type Subscribe = (channel: string, hear: (message: string) => void) => () => void

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
  return (channel, hear) => {
    const parent = client as IoredisParent
    // Nothing is due on it, so silence says nothing; and it has to connect whatever its parent waits for.
    const options = { lazyConnect: false, enableOfflineQueue: true, socketTimeout: undefined }
    const subscriber = parent.duplicate(
      ...(parent.isCluster ? [[], options] : [options]),
    ) as IoredisSubscriber
    subscriber.on('error', ignore)
    subscriber.on('message', (_, message) => hear(message))
    subscriber.on('ready', () => void subscriber.subscribe(channel).catch(ignore))
    return () => subscriber.disconnect()
  }
}

interface NodeRedisSubscriber {
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  subscribe(channel: string, hear: (message: string) => void): Promise<unknown>
  destroy(): void
}

/** Undefined for a pool, which cannot subscribe. */
export function nodeRedisSubscribe(client: object): Subscribe | undefined {
  const parent = client as { duplicate?(): unknown; subscribe?: unknown }
  if (typeof parent.duplicate !== 'function' || typeof parent.subscribe !== 'function') return undefined
  return (channel, hear) => {
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
      // One that is ended while it connects finishes that first, and keeps its sockets.
      .then(() => (ended ? end() : subscriber.subscribe(channel, hear)))
      .catch(ignore)
    return end
  }
}

/** Whoever waits looks from time to time. */
function ignore(): void {}
