import { PolicyError } from './errors.js'

/*
 * Several copies of this package may meet in one process: its ESM and its CommonJS build, or a second version below a
 * dependency. Parts of different copies work together if both have the same contract: the methods and fields that limiters,
 * stores, policies and decisions use of each other. Classes and private fields belong to one copy, so no part relies on
 * those of another.
 */

/** Raised with every change of what limiter, store, policy and decision use of each other. Users need not know it. */
export const CONTRACT_NUMBER = 10

/** Under this symbol each part has its contract number. Stores of users have none. */
export const CONTRACT = Symbol.for('sluice.contract')

/** Under this symbol a limiter has its settings, so that adapters can make limiters that count in the same store. */
export const SETTINGS = Symbol.for('sluice.settings')

/**
 * Under this symbol a function that gives a limiter its policies says when to ask it again: it holds what it is given weakly, and calls it
 * before it returns another list. Any other function is asked at each call.
 */
export const FOLLOW = Symbol.for('sluice.follow')

/** Under this symbol what is handed to `redisStore` in place of a client has its connection: that of a simulated server. */
export const CONNECTION = Symbol.for('sluice.connection')

/** Under this symbol a limiter opens a part of a call on several keys. */
export const OPEN_PART = Symbol.for('sluice.part')

/** Under this symbol a limiter reserves a part of a call on several keys. */
export const RESERVE_PART = Symbol.for('sluice.reservePart')

/** Under this symbol a limiter reports the decision of a part. */
export const REPORT_PART = Symbol.for('sluice.reportPart')

/** Under this symbol a limiter says whether anything listens to its decisions under a list of policies. */
export const HEARS = Symbol.for('sluice.hears')

/** Under this symbol a limiter has the promise that ends with the first read of its store's records, until that has ended. */
export const UNREAD = Symbol.for('sluice.unread')

/**
 * Checks that `part`, a limiter, store or policy, was made by a copy of this package that works with this one: under an equal
 * contract number, which changes with what such parts use of each other. Stores of users have no number. `what` names it in the
 * message.
 * @throws {PolicyError} VERSION_MISMATCH where `part` was made under another contract.
 */
export function checkContract(what: string, part: { readonly [CONTRACT]?: number }): void {
  const number = part[CONTRACT]
  if (number === undefined || number === CONTRACT_NUMBER) return
  const why = `${what} was made by a version of @sluice/core that does not work with this one`
  throw new PolicyError('VERSION_MISMATCH', `${why}: npm ls @sluice/core lists both`)
}

/**
 * Returns the value `name` that all copies of this package in the process share, if they have the same contract number. The first
 * that asks has it made by `make`.
 */
export function sharedInProcess<T>(name: string, make: () => T): T {
  const all = globalThis as unknown as Record<symbol, T | undefined>
  return (all[Symbol.for(`sluice.${name}.${CONTRACT_NUMBER}`)] ??= make())
}
