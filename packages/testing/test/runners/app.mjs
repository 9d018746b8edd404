// The same application as an ES module.
import { createLimiter, slidingLog } from '@sluice/core'

const limiter = createLimiter({ policies: [slidingLog({ limit: 1, window: '1m' })] })

export const call = (key) => limiter.consume(key)
