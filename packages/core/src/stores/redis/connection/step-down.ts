import type { RedisConnection, ScriptReply } from '../redis-connection.js'
import { isReadOnly } from '../clients/failure.js'
import type { OwnIoredis } from './packages.js'

/**
 * For a client that connects anew when it meets READONLY: the master became a replica. Redis did nothing then, so the
 * call is made again, once, over the new connection, and its caller does not hear of the change.
 */
export function afterStepDown(client: OwnIoredis, connection: RedisConnection): RedisConnection {
  let closing: Promise<void> | undefined

  /** What is sent before the old connection has closed would be rejected with it. */
  function closed(): Promise<void> {
    closing ??= new Promise((resolve) => {
      client.once('close', () => {
        closing = undefined
        resolve()
      })
    })
    return closing
  }

  async function send(call: () => Promise<ScriptReply>): Promise<ScriptReply> {
    try {
      return await call()
    } catch (error) {
      if (!isReadOnly(error)) throw error
      if (client.status === 'ready') await closed()
      return call()
    }
  }

  return {
    ...connection,
    evalsha: (...args) => send(() => connection.evalsha(...args)),
    eval: (...args) => send(() => connection.eval(...args)),
  }
}
