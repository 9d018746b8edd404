/*
 * The entry point for the other packages of this repository, `@sluice/core/internal`. Its names change with any minor version:
 * nothing else may import it.
 */
export { POLICY } from './algorithms/contract/policy.js'
export { GCRA } from './algorithms/gcra.js'
export { LEAKY_BUCKET } from './algorithms/leaky-bucket.js'
export { SLIDING_WINDOW } from './algorithms/sliding-window.js'
export { TOKEN_BUCKET } from './algorithms/token-bucket.js'
export { ANSWER, policiesOf } from './limiter/decision.js'
export { counting, type DecisionCounter } from './limiter/events.js'
export { guard } from './leases/guard.js'
export { LIMITER, type LimiterSettings } from './limiter/limiter-options.js'
export { MEMORY_STORE } from './stores/memory/index.js'
export { type Gathering, gatheringOf } from './stores/bytes/gathering.js'
export { denialCache, type DenialCacheOptions } from './stores/denial-cache-options.js'
export {
  type HolderTickets,
  type PermitCall,
  type PermitHolder,
  PermitQueues,
  permitsBeside,
} from './stores/memory/permit-queues.js'
export { decideAtOnce } from './stores/together.js'
export { ALIVE_US, CLAIM_US, GRACE_US, PERMIT_STEPS, TICKET_STATES } from './stores/permits.js'
export { REASONS } from './stores/store.js'
export { onAbort } from './values/abort.js'
export { clearTimer, machineClock, nowMs, setTimer, systemClock, type TimerHandle } from './values/clock.js'
export { Closing, storeClosed } from './values/closing.js'
export { checkContract, CONTRACT, CONTRACT_NUMBER, inCommon, SETTINGS } from './values/contract.js'
export { KeyLimits } from './semaphore/adaptive-limit.js'
export { checkCost } from './values/cost.js'
export { formatDuration, millisecondsOf } from './values/duration.js'
export { expected } from './values/errors.js'
export { ExpiringMap } from './values/expiring-map.js'
export { digest, ownText, storedKey } from './values/key.js'
export { Listeners, type ListenOptions, warningOnce } from './values/listeners.js'
export {
  checkedBy,
  checkNames,
  clock,
  type Declaration,
  type DeclarationOf,
  duration,
  flag,
  func,
  nearestTo,
  nested,
  number,
  oneOf,
  type Option,
  option,
  printableName,
  read,
  readOne,
  REFUSED,
  required,
  type Settings,
  text,
  unchecked,
  uncheckedLike,
  whole,
} from './values/options.js'
export { warnProcess } from './values/process-warning.js'
export { sha256 } from './values/sha256.js'
