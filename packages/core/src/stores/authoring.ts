/*
 * The entry point for authors of stores, `@sluice/core/store`: the contract (store.ts), everything that its signatures use,
 * and the functions that most stores need.
 */
import {
  fixedWindow,
  gcra,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../algorithms/index.js'

export type {
  Algorithm,
  Charge,
  Leasing,
  Policy,
  PolicyChanges,
  PolicyOptions,
  View,
} from '../algorithms/contract/policy.js'
export { Ring, type RingMark, State } from '../algorithms/contract/state.js'
export type { Clock } from '../values/clock.js'
export type { Duration } from '../values/duration.js'
export {
  SluiceError,
  StoreError,
  type StoreErrorCode,
  type StoreErrorOptions,
  type StoreFailure,
} from '../values/errors.js'
export { guard } from '../leases/leased-store.js'
export { keyspaceOver } from './bytes/keyspace-over.js'
export type { NewState, StateChange, Update, UpdateMany, Updates } from './bytes/updates.js'
export type { FailureSettings, GuardedPermitsOptions, GuardSettings, LeaseSettings } from './guard-options.js'
export type { Penalty } from './penalty.js'
export type { Permits, PermitStep, TicketState, TicketStates } from './permits.js'
export {
  type Answer,
  type Ask,
  type Board,
  type Booking,
  type Caller,
  type Correction,
  type DatedCharge,
  type Degraded,
  type DenialCacheBounds,
  type StoreGuard,
  isDenied,
  type Keyspace,
  type MaybePromise,
  type Notice,
  type Outage,
  type Part,
  type PlacedPart,
  type Reason,
  type Receiver,
  type Report,
  type Store,
  type Together,
  type WholeReceiver,
} from './store.js'

/** The factories of all algorithms. Not `export * as`: that would keep all of them in every bundle. */
export const algorithms = { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket }
