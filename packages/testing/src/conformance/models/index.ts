import type { Model } from '../rule.js'
import { model as calendarWindow } from './calendar-window.js'
import { model as fixedWindow } from './fixed-window.js'
import { model as gcra } from './gcra.js'
import { model as leakyBucket } from './leaky-bucket.js'
import { model as slidingLog } from './sliding-log.js'
import { model as slidingWindow } from './sliding-window.js'
import { model as tokenBucket } from './token-bucket.js'

/** A model for each algorithm, under the name of its factory. */
export const models: Readonly<Record<string, Model>> = {
  calendarWindow,
  fixedWindow,
  gcra,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
}
