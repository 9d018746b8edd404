// What each simulated process runs: core, as one bundle.
export * from '@sluice/core'
export { redisStore } from '@sluice/core/redis'
export { ANSWER, CONNECTION } from '@sluice/core/internal'
