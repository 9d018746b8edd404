/*
 * The part that HTTP adapters share: a request becomes a key and a cost, a decision becomes headers and an answer.
 */
export { addressMatcher } from './access.js'
export {
  addressesOf,
  byIp,
  type ByIpOptions,
  callerOf,
  expressTrustsAll,
  fastifyTrustsAll,
  ipKey,
  keepAddresses,
  type KeyFunction,
  type KeySource,
  reportedAddress,
} from './caller.js'
export { clientAddress } from './client-address.js'
export { decisionAbout, keptHeadersOf } from './decisions.js'
export { type Denied, PROBLEM_TYPE } from './denial.js'
export { isResponse, onAborted, whenRead, withKept } from './fetch-exchange.js'
export { behindProxies, PROXY_SETTING, type ProxyOptions } from './forwarded-for.js'
export { getOrMake } from './get-or-make.js'
export { type CombinableGuard, combineGuards, createGuard } from './create-guard.js'
export type { Guard, GuardSteps } from './guard.js'
export type { AskAboutSeveral } from './several-limits.js'
export {
  hasHungUp,
  isTcp,
  type NodeRequest,
  onConnectionLost,
  onResponseSent,
  responseEnded,
} from './hung-up.js'
export {
  type HeaderFormat,
  type HeaderNames,
  type HeaderOptions,
  HEADERS,
  lowerCase,
  rememberedHeaders,
  remembering,
} from './headers.js'
export { joinKey, type KeyPart } from './key-parts.js'
export { apiKeyIn, apiKeyKey, byApiKey, byUser, userKey } from './keys.js'
export * from './limit-node-request.js'
export * from './limit-request.js'
export { nodePlatform, overseeHead, overseeHeads } from './node-platform.js'
export {
  type AddressList,
  INHERITED,
  pick,
  type PartLimitOptions,
  REQUEST_LIMIT,
  type RequestLimitOptions,
  USAGE,
} from './options.js'
export {
  chain,
  pathOf,
  type KeptHeaders,
  type Platform,
  type Problem,
  type RequestReader,
} from './platform.js'
export { refuseSlips, refuseUncalled } from './slips.js'
export type { SetupWarning } from './setup-warnings.js'
export { closeUnread, type ClientConnection, maxBuffered } from './unread.js'
export { usageHandler } from './usage-handler.js'
export type { RequestWaitOptions } from './waiting.js'
