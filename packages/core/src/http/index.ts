export { digest } from '../values/key.js'
export { clientAddress } from './client-address.js'
export { decisionAbout } from './counted.js'
export { createGuard, type Denied, type Guard } from './guard.js'
export type { HeaderFormat, HeaderOptions } from './headers.js'
export {
  apiKeyKey,
  byApiKey,
  byIp,
  type ByIpOptions,
  byUser,
  ipKey,
  joinKey,
  type KeyFunction,
  type KeyPart,
  type KeySource,
  userKey,
} from './keys.js'
export type { Misuse } from './misuse.js'
export { type GuardOptions, settingsOf } from './options.js'
export type { Platform, RequestReader } from './platform.js'
export { expressTrust, fastifyTrust } from './proxy-trust.js'
export { onResponseSent } from './response-sent.js'
