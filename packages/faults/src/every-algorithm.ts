import {
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'

/** Not the list of `@sluice/core/store`: a process of an older build has no such entry. */
const factories = { fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket }

/** A policy as it travels to another process. */
export type PolicySpec = readonly [
  factory: keyof typeof factories,
  options: { readonly limit: number; readonly window: string; readonly [option: string]: unknown },
]

/** The policy of a specification that can be sent to another process: the name of a factory and its options. */
export function policyOf([factory, options]: PolicySpec): Policy {
  return (factories[factory] as (options: object) => Policy)(options)
}

/**
 * Every algorithm in every variant with a limit of `limit`, of which nothing comes back while a row runs: windows of a
 * day, and of a year where they are aligned to the epoch and one might end in the middle.
 */
export function everyAlgorithm(limit: number): readonly (readonly [title: string, spec: PolicySpec])[] {
  const day = { limit, window: '1d' }
  const year = { limit, window: '365d' }
  return [
    ['sliding log', ['slidingLog', day]],
    ['fixed window', ['fixedWindow', year]],
    ['sliding window', ['slidingWindow', day]],
    ['weighted sliding window', ['slidingWindow', { ...day, count: 'weighted' }]],
    ['two counters', ['slidingWindow', { ...day, count: 'weighted', buckets: 1 }]],
    ['token bucket', ['tokenBucket', day]],
    ['token bucket by interval', ['tokenBucket', { ...year, refill: 'interval' }]],
    ['leaky bucket', ['leakyBucket', day]],
    ['gcra', ['gcra', day]],
  ]
}
