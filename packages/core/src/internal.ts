/*
 * The entry point for the other packages of this repository, `@sluice/core/internal`. Its names change with any minor version:
 * nothing else may import it.
 */
export { provideTemporal, type TemporalSource } from './algorithms/calendar/calendar.js'
export { ANSWER, policiesOf } from './limiter/decision.js'
export { counting, type DecisionCounter } from './limiter/events.js'
export { guard } from './leases/leased-store.js'
export {
  CHECKED,
  type CheckedOptions,
  KEY,
  LIMITER,
  type LimiterSettings,
  REPORTS,
} from './limiter/limiter-options.js'
export { PENALTY } from './limiter/penalty-options.js'
export { decideTogether, prepareTogether } from './limiter/decide-together.js'
export { whileExtended } from './limiter/while-extended.js'
export { permitsFirst } from './limiter/permits-first.js'
export { type KeyRecord, readRecord } from './limiter/key-record.js'
export { MEMORY_STORE } from './stores/memory/index.js'
export { type Gathering, gatheringOf } from './stores/bytes/gathering.js'
export { denialCache, type DenialCacheOptions } from './stores/denial-cache-options.js'
export * from './stores/memory/permit-queues.js'
export { RESERVING } from './stores/reservations.js'
export { decideAtOnce, MOST_PARTS } from './stores/together.js'
export { ALIVE_US, CLAIM_US, GRACE_US, PERMIT_STEPS, TICKET_STATES } from './stores/permits.js'
export { partsOf, type RedisKeyParts, STATE_FORMAT } from './stores/redis/key.js'
export type { RedisConnection, RedisKey, ScriptReply } from './stores/redis/redis-connection.js'
export { type Answer, REASONS } from './stores/store.js'
export { onAbort, sleep } from './values/abort.js'
export { clearTimer, machineClock, nowMs, setTimer, systemClock, type TimerHandle } from './values/clock.js'
export { Closing, storeClosed } from './values/closing.js'
export {
  checkContract,
  CONNECTION,
  CONTRACT,
  CONTRACT_NUMBER,
  FOLLOW,
  sharedInProcess,
  OPEN_PART,
  SETTINGS,
} from './values/contract.js'
export { KeyLimits } from './semaphore/adaptive-limit.js'
export { checkCost } from './values/cost.js'
export { DURATION, formatDuration, millisecondsOf } from './values/duration.js'
export { expectedButGot } from './values/errors.js'
export { ExpiringMap } from './values/expiring-map.js'
export { digest, copiedText, storedKey } from './values/key.js'
export { Listeners, type ListenOptions, warningOnce } from './values/listeners.js'
export * from './values/options.js'
export { inThisContext, isPromise } from './values/promises.js'
export { WeakValues } from './values/weak-values.js'
export { warnProcess, warnProcessOnce } from './values/process-warning.js'
export { sha256 } from './values/sha256.js'
