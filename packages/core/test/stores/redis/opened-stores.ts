import type { Store } from '../../../src/index.js'
import type { RedisClient } from '../../../src/stores/redis/clients/detect.js'
import { redisStore, type RedisStoreOptions } from '../../../src/stores/redis/index.js'

/** A store, and what ends it with its client. */
export interface Opened {
  readonly store: Store
  end(): unknown
}

export function overIoredis(
  client: RedisClient & { disconnect(): void },
  options: RedisStoreOptions = {},
): Opened {
  return { store: redisStore(client, options), end: () => client.disconnect() }
}

export async function overNodeRedis(
  client: RedisClient & { connect(): Promise<unknown>; destroy(): unknown },
  options: RedisStoreOptions = {},
): Promise<Opened> {
  const store = redisStore(client, options)
  await client.connect()
  return { store, end: () => client.destroy() }
}

export function ofItsOwn(store: Store): Opened {
  return { store, end: () => store.close() }
}
