/** The EventEmitter that every client is. */
export interface Emitter {
  on(event: 'error', listener: (error: unknown) => void): unknown
  off(event: 'error', listener: (error: unknown) => void): unknown
}

const users = new WeakMap<Emitter, number>()

/**
 * Keeps one 'error' listener on a client while any connection uses it. The returned function ends this use. Without a
 * listener, node-redis ends the process when a connection breaks. All stores that share a client share one listener,
 * because one for each would raise Node's warning about leaks.
 */
export function listenForErrors(client: Emitter): () => void {
  const count = users.get(client) ?? 0
  if (count === 0) client.on('error', ignore)
  users.set(client, count + 1)
  let held = true
  return () => {
    if (!held) return
    held = false
    const left = users.get(client)! - 1
    users.set(client, left)
    if (left === 0) client.off('error', ignore)
  }
}

/** The calls that fail because of the error reject with it. */
function ignore(): void {}
