import { PolicyError } from './errors.js'

/*
 * Several copies of this package may meet in one process: its ESM and its CommonJS build, or a second version below a
 * dependency. Parts of one copy work in another where both keep the same contract: what limiters, stores, policies and
 * decisions call on each other and read of each other. Classes and private fields are of one copy, so no part relies on
 * those of another.
 */

/** Raised whenever limiter, store, policy or decision change for each other. Users' code is not concerned by it. */
export const CONTRACT_NUMBER = 2

/** Under this symbol each part says which contract it keeps; stores of users' own making say nothing. */
export const CONTRACT = Symbol.for('sluice.contract')

/** Under this symbol a limiter says where it counts, so that an adapter can make others which count there. */
export const SETTINGS = Symbol.for('sluice.settings')

/**
 * `what` names the part in the message.
 * @throws {PolicyError} VERSION_MISMATCH where `part` was made under another contract.
 */
export function checkContract(what: string, part: { readonly [CONTRACT]?: number }): void {
  const number = part[CONTRACT]
  if (number === undefined || number === CONTRACT_NUMBER) return
  throw new PolicyError(
    'VERSION_MISMATCH',
    `${what} was made by another version of @sluice/core, which does not work with this one: ` +
      'npm ls @sluice/core lists both, npm dedupe may leave one',
  )
}

/** What all copies of one contract have in common, made by the first that asks for it. */
export function inCommon<T>(name: string, make: () => T): T {
  const all = globalThis as unknown as Record<symbol, T | undefined>
  return (all[Symbol.for(`sluice.${name}.${CONTRACT_NUMBER}`)] ??= make())
}
