export type { AdaptiveOptions } from './adaptive/ceiling.js'
export { adaptive, type AdaptiveRateOptions } from './adaptive/options.js'
export { limitAxios } from './axios.js'
export { decisionOf } from './decisions.js'
export type {
  AttemptEnd,
  AttemptEvent,
  CallEvent,
  ClientEvent,
  OutboundEvent,
  OutboundEvents,
  QueueEvent,
  QueueEvents,
} from './events.js'
export { type ExceededReason, RateLimitExceededError } from './exceeded.js'
export { limitFetch } from './fetch.js'
export type { LimitedClient } from './limited-client.js'
export type { OutboundOptions } from './options.js'
export { pauseMsOf } from './other-side/pause.js'
export { createQueue, type Queue } from './queue.js'
export type { QueueOptions, RunContext, RunOptions } from './queue-options.js'
export type { OutboundReply, OutboundRequest } from './request.js'
export type { SettleOptions } from './settle.js'
export { limitUndici } from './undici.js'
export type { RetryBudgetOptions } from './retry-budget.js'
export type { RefusalKind } from './verdict.js'
export type { WaitingOptions } from './waiting-options.js'
