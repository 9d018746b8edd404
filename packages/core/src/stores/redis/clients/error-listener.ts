/** What every client is: an EventEmitter, of whichever module instance. */
export interface Emitter {
  on(event: 'error', listener: (error: unknown) => void): unknown
  off(event: 'error', listener: (error: unknown) => void): unknown
}

const users = new WeakMap<Emitter, number>()

/**
 * Keeps one 'error' listener on a client for as long as anybody here uses it; call what it returns to let go, once.
 * Without any listener node-redis ends the process when a connection breaks. One is enough however many stores share
 * a client: a listener for each would raise Node's warning about leaks.
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

/** Every call that suffers from the error rejects with it. */
function ignore(): void {}
