// The figures that tests and measurements compute.
export { bytesInUse, collect, withoutCompilers } from './heap.js'
export { kbPerMinute, type Sample, sample } from './heap-samples.js'
export { outcome } from './outcome.js'
export { ownMs, ranMs } from './own-time.js'
export { randomFrom } from './random.js'
export { bootstrapInterval, median, quantile, ratios, spread } from './statistics.js'
