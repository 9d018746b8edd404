import type { Store } from '@sluice/core'

/** The operations that a store elsewhere is asked for, one part of a call on several keys at a time. */
export type Step = 'try' | 'commit' | 'cancel'

/** The store, with `before` called, and waited for, before each step of a call whose keys no single program holds. */
export function watched(store: Store, before: (step: Step, key: string) => Promise<void> | void): Store {
  return over(store, {
    keyspace(...args) {
      const keyspace = store.keyspace(...args)
      return over(keyspace, {
        decide(ask, key, ...rest) {
          const decide = () => keyspace.decide(ask, key, ...rest)
          const waited = ask === 'try' || ask === 'commit' ? before(ask, key) : undefined
          return waited ? waited.then(decide) : decide()
        },
        cancel(booking, caller) {
          const cancel = () => keyspace.cancel(booking, caller)
          const waited = before('cancel', booking.key)
          return waited ? waited.then(cancel) : cancel()
        },
      })
    },
  })
}

/** An object as it is, but for the members that `own` has in their place. */
function over<T extends object>(target: T, own: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(Object.hasOwn(own, name) ? own : target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
