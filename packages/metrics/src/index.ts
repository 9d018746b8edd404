export { annotateSpans, type TraceLike } from './annotate-spans.js'
export type { Denial } from './denials/denial.js'
export { denialId } from './denials/denial-id.js'
export {
  type DeniedEvent,
  type Denials,
  keepDenials,
  type KeepDenialsOptions,
} from './denials/keep-denials.js'
export { lastDenials, type LastDenials } from './denials/last-denials.js'
export { type Instrument, INSTRUMENTS } from './instruments.js'
export { observe, type ObserveOptions, type QueueLike } from './observe.js'
export type { MeterLike } from './sinks/open-telemetry.js'
export { prometheusName, type PromClientLike, type RegistryLike } from './sinks/prometheus.js'
export type { DecisionCount } from './top-keys/decision-counts.js'
export { fleetLimits, fleetTopKeys, type FleetTopKeys } from './top-keys/fleet-top-keys.js'
export { hashKey, type KeyHash } from './top-keys/key-hash.js'
export type { PostedLimit } from './top-keys/post.js'
export type { KeyCount } from './top-keys/space-saving.js'
export { topKeys, type TopKeys, type TopKeysOptions } from './top-keys/top-keys.js'
