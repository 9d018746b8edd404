// For tests of stores and of services that use Sluice.
export { conformance, type ConformanceOptions } from './conformance/kit.js'
export type { OpenStore } from './conformance/session.js'
export {
  type AnyResponse,
  assertAllowed,
  assertDenied,
  type ExpectedDenial,
  type ExpectedLimit,
} from './assertions.js'
export { FakeClock } from './fake-clock.js'
export { installFakeClock, type InstalledClock } from './installed-clock.js'
export {
  type Arrival,
  mostIn,
  type Provider,
  type ProviderOptions,
  type ProviderReply,
  startProvider,
} from './provider.js'
