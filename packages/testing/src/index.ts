// For tests of stores and of services that use Sluice.
export { conformance, type ConformanceOptions } from './conformance/kit.js'
export type { OpenStore } from './conformance/session.js'
export { FakeClock } from './fake-clock.js'
export {
  type Arrival,
  mostIn,
  type Provider,
  type ProviderOptions,
  type ProviderReply,
  startProvider,
} from './provider.js'
