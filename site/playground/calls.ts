import type { Span } from './promise.js'
import { type ColumnResult, DENIED } from './run.js'

/** A call as a row of the table. */
export function callRow(result: ColumnResult, i: number) {
  const { at, key, cost, remaining } = result
  return {
    call: i + 1,
    ms: at[i]!,
    key: key[i]!,
    cost: cost[i]!,
    answer: answerText(result, i),
    left: remaining[i]!,
  }
}

/** The rows of the calls within a time, at most so many. */
export function callRows(result: ColumnResult, { from, to }: Span, most = Infinity) {
  const first = result.at.findIndex((at) => at >= from)
  const rows = []
  for (let i = first; i >= 0 && result.at[i]! < to && rows.length < most; i++) rows.push(callRow(result, i))
  return rows
}

/** The call that is nearest to an instant; -1 where there is none. */
export function nearestCall({ at }: ColumnResult, instant: number): number {
  const after = at.findIndex((each) => each >= instant)
  if (after <= 0) return after < 0 ? at.length - 1 : 0
  return instant - at[after - 1]! < at[after]! - instant ? after - 1 : after
}

function answerText({ outcome, at, turn, retryAfter, remaining }: ColumnResult, i: number): string {
  const wait = retryAfter[i]!
  if (outcome[i] === DENIED)
    return wait === Infinity ? 'denied, it never fits' : `denied, try again in ${wait} ms`
  const waited = Math.ceil(turn[i]! - at[i]!)
  return waited > 0 ? `served after ${waited} ms` : `allowed, ${remaining[i]} left`
}
