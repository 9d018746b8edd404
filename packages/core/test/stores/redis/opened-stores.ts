import type { Store } from '../../../src/index.js'
import type { RedisClient } from '../../../src/stores/redis/clients/detect.js'
import { redisStore } from '../../../src/stores/redis/index.js'

/** A store, and what ends it with its client. */
export interface Opened {
  readonly store: Store
  end(): unknown
}

export function overIoredis(client: RedisClient & { disconnect(): void }): Opened {
  return { store: redisStore(client), end: () => client.disconnect() }
}

export async function overNodeRedis(
  client: RedisClient & { connect(): Promise<unknown>; destroy(): unknown },
): Promise<Opened> {
  const store = redisStore(client)
  await client.connect()
  return { store, end: () => client.destroy() }
}

export function ofItsOwn(store: Store): Opened {
  return { store, end: () => store.close() }
}
