// An application as its tests find it: its limiter is made when the module is loaded, and is handed to nobody.
const { createLimiter, slidingLog } = require('@sluice/core')

const limiter = createLimiter({ policies: [slidingLog({ limit: 1, window: '1m' })] })

module.exports = { call: (key) => limiter.consume(key) }
