export * from './algorithms/index.js'
export { Decision, type DecisionRecord, type PolicyState } from './decision.js'
export { type Duration, parseDuration } from './duration.js'
export {
  InputError,
  PolicyError,
  SluiceError,
  StoreError,
  type StoreErrorCode,
  type StoreErrorOptions,
  type StoreFailure,
} from './errors.js'
export type { LimiterEvents, Listener } from './events.js'
export type { LeaseOptions } from './leases/lease-options.js'
export {
  type AcquireOptions,
  type CallOptions,
  createLimiter,
  type Limiter,
  type LimiterOptions,
  type ShapeOptions,
} from './limiter.js'
export type { FailureMode } from './resilience/failure-mode.js'
export type { Algorithm, Policy, PolicyOptions, View } from './policy.js'
export {
  createSemaphore,
  type Semaphore,
  type SemaphoreAcquireOptions,
  type SemaphoreOptions,
} from './semaphore/semaphore.js'
export type { Permit } from './semaphore/permit.js'
export { memoryStore, type MemoryStore, type MemoryStoreOptions } from './stores/memory.js'
export type { Answer, Booking, Keyspace, Permits, Reason, Store, TicketState } from './stores/store.js'
