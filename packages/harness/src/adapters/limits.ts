import {
  createLimiter,
  type Limiter,
  type LimiterOptions,
  memoryStore,
  slidingLog,
  StoreError,
} from '@sluice/core'
import { guard, type Keyspace, type Store } from '@sluice/core/store'

/** A limiter of `limit` a minute whose clock stands still. */
export function stopped(limit: number, options: Partial<LimiterOptions> = {}): Limiter {
  const policies = [slidingLog({ limit, window: '1m' })]
  return createLimiter({ name: 'api', policies, store: memoryStore({ clock: () => 0 }), ...options })
}

/** The codes of a limiter's warnings, as they come. */
export function warningsOf(limiter: Limiter): readonly string[] {
  const codes: string[] = []
  limiter.on('warning', ({ code }) => void codes.push(code))
  return codes
}

/** A limiter whose store fails each call as out of memory. */
export function undecided(options: Partial<LimiterOptions>): Limiter {
  const fail = () => Promise.reject(new StoreError('STORE_OOM', 'no room'))
  const keyspace: Store['keyspace'] = (_, policies) =>
    new Proxy({ policies, answersAtOnce: false } as Keyspace, {
      get: (own, name: keyof Keyspace) => own[name] ?? fail,
    })
  const store: Store = { guard, keyspace, now: () => performance.now() * 1000, close: () => {} }
  return stopped(1, { store, ...options })
}
