export { type Instrument, INSTRUMENTS } from './instruments.js'
export { observe, type ObserveOptions, type QueueLike } from './observe.js'
export type { MeterLike } from './sinks/open-telemetry.js'
export { prometheusName, type PromClientLike, type RegistryLike } from './sinks/prometheus.js'
