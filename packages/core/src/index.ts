export * from './algorithms/index.js'
export { type Decision, type DecisionRecord, isDecision, type PolicyState } from './limiter/decision.js'
export type { AllowedDecision, DeniedDecision, DenialReason } from './limiter/decision.js'
export { type Duration, parseDuration } from './values/duration.js'
export { InputError, PolicyError, SluiceError, StoreError } from './values/errors.js'
export type { InputErrorCode, PolicyErrorCode, SluiceErrorCode, StoreErrorCode } from './values/errors.js'
export type { StoreErrorOptions, StoreFailure } from './values/errors.js'
export type { Explanation } from './limiter/explain.js'
export type { DecidedBy, DecisionEvent, LimiterEvents, Listener } from './limiter/events.js'
export type { ListenOptions } from './values/listeners.js'
export { createLimiter, type Limiter } from './limiter/limiter.js'
export type { PartOptions } from './limiter/decide-together.js'
export { reserveAll, type ReservePart } from './limiter/reserve-all.js'
export type { Reservation, Settlement } from './limiter/reservation.js'
export { ReservationDeniedError } from './limiter/while-extended.js'
export type { ReserveOptions } from './limiter/reserving-options.js'
export type {
  ReservationChange,
  ReservationEffect,
  ReservationSettings,
  Reserved,
  ReserveCall,
} from './stores/reservations.js'
export type { PermitPart, PermitSource } from './limiter/permits-first.js'
export { consumeAll, decideAll, peekAll } from './limiter/several-keys.js'
export type { WholeDecision, WholeRecord } from './limiter/whole-decision.js'
export type { AcquireOptions, CallOptions, LimiterOptions, ShapeOptions } from './limiter/limiter-options.js'
export type { PenaltyOptions } from './limiter/penalty-options.js'
export type { Calendar, Every } from './algorithms/calendar/calendar.js'
export type {
  Algorithm,
  Bounds,
  Policy,
  PolicyFactory,
  PolicyOptions,
  View,
} from './algorithms/contract/policy.js'
export { createSemaphore, type Semaphore } from './semaphore/semaphore.js'
export type { AdaptiveLimit, AdaptReason, FollowedLimit, LimitChange } from './semaphore/adaptive-limit.js'
export type { CallOutcome, Permit } from './values/permit.js'
export type { PermitEnd, PermitEvent, PermitWait, SemaphoreEvents } from './semaphore/semaphore-events.js'
export type { SemaphoreAcquireOptions, SemaphoreOptions } from './semaphore/semaphore-options.js'
export { memoryStore, type MemoryStore, type MemoryStoreOptions } from './stores/memory/index.js'
export type { FailureMode, LeaseOptions } from './stores/guard-options.js'
export type { Permits, PermitStep, TicketState, TicketStates } from './stores/permits.js'
export type {
  Answer,
  Board,
  Booking,
  Keyspace,
  Outage,
  Reason,
  Reservations,
  Store,
  StoreGuard,
} from './stores/store.js'
