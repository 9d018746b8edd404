// What each simulated process runs: core, as one bundle.
export * from '@sluice/core'
export { redisStore } from '@sluice/core/redis'
export { ANSWER, CONNECTION, decideAtOnce, PermitQueues } from '@sluice/core/internal'
