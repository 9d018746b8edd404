import type { MaybePromise } from '../stores/store.js'
import { isPromise } from './chain.js'
import { isHungUp } from './client-address.js'
import type { KeySource } from './keys.js'

/** What `unlessHungUp` returns in place of a value. */
export const HUNG_UP = Symbol('hung up')

/** HUNG_UP if the caller hung up before it could be identified: the request goes no further, and no key is charged. */
export function unlessHungUp<Req, T>(
  read: (req: Req, source: KeySource<Req>) => MaybePromise<T>,
  req: Req,
  source: KeySource<Req>,
): MaybePromise<T | typeof HUNG_UP> {
  try {
    const value = read(req, source)
    return isPromise(value) ? Promise.resolve(value).catch(ifHungUp) : value
  } catch (error) {
    return ifHungUp(error)
  }
}

function ifHungUp(error: unknown): typeof HUNG_UP {
  if (isHungUp(error)) return HUNG_UP
  throw error
}
