/*
 * The entry point for authors of stores, `@sluice/core/store`: the contract (store.ts), everything that its signatures use,
 * and the functions that most stores need.
 */
import { calendarWindow, fixedWindow, slidingLog, slidingWindow } from '../algorithms/index.js'
import { gcra, leakyBucket, tokenBucket } from '../algorithms/index.js'

export type { Calendar, Every } from '../algorithms/calendar/calendar.js'
export type {
  Algorithm,
  Bounds,
  Charge,
  Leasing,
  PolicyFactory,
  View,
} from '../algorithms/contract/policy.js'
export type { Policy, PolicyChanges, PolicyOptions } from '../algorithms/contract/policy.js'
export { Ring, type RingMark, State } from '../algorithms/contract/state.js'
export type { Clock } from '../values/clock.js'
export type { Duration } from '../values/duration.js'
export { SluiceError, StoreError } from '../values/errors.js'
export type { StoreErrorCode, StoreErrorOptions, StoreFailure } from '../values/errors.js'
export { guard } from '../leases/leased-store.js'
export { keyspaceOver } from './bytes/keyspace-over.js'
export type { NewState, StateChange, Update, UpdateMany, Updates } from './bytes/updates.js'
export type { FailureSettings, GuardedPermitsOptions, GuardSettings, LeaseSettings } from './guard-options.js'
export type { Penalty } from './penalty.js'
export type { Permits, PermitStep, TicketState, TicketStates } from './permits.js'
export type {
  ReservationChange,
  ReservationEffect,
  ReservationSettings,
  Reserved,
  ReserveCall,
} from './reservations.js'
export { isDenied } from './store.js'
export type { Answer, Ask, Booking, Caller, ChargeCounts, Correction, Crossing } from './store.js'
export type { DatedCharge, Degraded, Reason } from './store.js'
export type {
  Board,
  DenialCacheBounds,
  Keyspace,
  NewRecord,
  Notice,
  RecordChanges,
  Records,
} from './store.js'
export type { Report, Reservations, Store, StoredRecord, StoreGuard } from './store.js'
export type { MaybePromise, Outage, Part, PlacedPart, Receiver, Together, WholeReceiver } from './store.js'

/** The factories of all algorithms, by name: the registry of core. Not `export * as`: that would keep all of them in every bundle. */
export const algorithms = {
  calendarWindow,
  fixedWindow,
  gcra,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
}
