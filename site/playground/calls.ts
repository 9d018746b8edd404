import { timeText } from './draw.js'
import type { Span } from './spans.js'
import type { ColumnResult } from './run.js'

/** A call as a row of the table. */
export function callRow(result: ColumnResult, i: number) {
  const [at, key, cost, left] = [result.at[i]!, result.key[i]!, result.cost[i]!, result.remaining[i]!]
  const wait = result.retryAfterMs[i]!
  const waited = Math.ceil(result.turn[i]! - at)
  const denied = wait === Infinity ? 'denied, it never fits' : `denied, try again in ${timeText(wait)}`
  const served = waited > 0 ? `served after ${timeText(waited)}` : `allowed, ${left} left`
  return { call: i + 1, ms: at, key, cost, answer: Number.isNaN(waited) ? denied : served, left }
}

/** The rows of the calls within a time, at most so many. */
export function callRows(result: ColumnResult, { from, to }: Span, most = Infinity) {
  const [first, end] = [firstAt(result, from), firstAt(result, to)]
  return Array.from({ length: Math.min(most, end - first) }, (_, i) => callRow(result, first + i))
}

/** The number of the first call that comes no earlier than an instant. */
export function firstAt({ at }: ColumnResult, instant: number): number {
  const first = at.findIndex((each) => each >= instant)
  return first < 0 ? at.length : first
}
