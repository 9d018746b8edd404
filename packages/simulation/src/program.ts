// What each simulated process runs: core and outbound, as one bundle.
import '@sluice/calendar'
export * from '@sluice/core'
export { redisStore } from '@sluice/core/redis'
export { ANSWER, CONNECTION, decideAtOnce, PermitQueues } from '@sluice/core/internal'
export { createQueue, decisionOf, limitFetch } from '@sluice/outbound'
