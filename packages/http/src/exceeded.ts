import type { Decision, Limiter } from '@sluice/core'
import { sharedInProcess, nowMs, copiedText, storedKey } from '@sluice/core/internal'
import { getOrMake } from './get-or-make.js'

export type ReportExceeded<Req, Res> = (req: Req, res: Res, key: string, decision: Decision) => void

/**
 * Makes the function that a guard calls for each denial. It calls the option `onExceeded` for the denial with which a key goes
 * over its limit, but not for those that follow while the key stays over. An error in `onExceeded` is a warning and does
 * not affect the request.
 */
export function exceededReporter<Req, Res>(
  limiter: Limiter,
  onExceeded: (req: Req, res: Res, decision: Decision) => unknown,
): ReportExceeded<Req, Res> {
  return (req, res, key, decision) => {
    if (decision.reason === 'limit' && hasGoneOver(limiter, storedKey(key), decision))
      report(req, res, decision).catch(() => {})
  }

  /** Calls `onExceeded`. The request does not wait for it, and an error becomes a warning of the limiter. */
  async function report(req: Req, res: Res, decision: Decision): Promise<void> {
    try {
      await onExceeded(req, res, decision)
    } catch (error) {
      limiter.warn('EXCEEDED_FAILED', `onExceeded failed: ${String(error)}`)
    }
  }
}

/** Keys that are remembered for each limiter; beyond them the ones that were denied longest ago are forgotten. */
const MOST_KEYS = 10_000

/** By limiter and stored key, what was seen of its denials. */
const overLimit = sharedInProcess('exceeded', () => new WeakMap<Limiter, Map<string, OverLimit>>())

/** Instants of the monotonic clock, in milliseconds. */
interface OverLimit {
  readonly key: string
  /** The allowance of the key may be full again, as of its last denial. */
  readonly fullAt: number
  /** A window has passed since the key went over its limit. */
  readonly windowEnd: number
}

/**
 * Records that `decision` denied `key`, and returns whether the key has only now gone over its limit, which is reported
 * once. That is so with its first denial. With a later one it is so if two instants have passed: `fullAt`, as a key whose
 * allowance was not full again counts as still over; and `windowEnd`, a window after it last went over, so that a window
 * has one report at most. Beyond 10,000 keys the one that was denied longest ago is forgotten: the first of the map, as each
 * denial moves its key to the end. The map holds a copy of the key (`copiedText`), because a text that was cut from a header
 * would keep the whole header in memory.
 */
function hasGoneOver(limiter: Limiter, key: string, decision: Decision): boolean {
  const keys = getOrMake(overLimit, limiter, () => new Map<string, OverLimit>())
  const now = nowMs()
  const before = keys.get(key)
  const isNew = before === undefined || now >= Math.max(before.fullAt, before.windowEnd)
  const windowEnd = isNew ? now + windowOf(decision) : before.windowEnd
  // Deleted first, so that it becomes the newest of the map.
  keys.delete(key)
  if (keys.size >= MOST_KEYS) keys.delete(keys.keys().next().value!)
  // A limit of 0 is never full again, and counts by its window.
  const fullAt = now + (decision.retryAfterMs < Infinity ? decision.resetAfterMs : windowOf(decision))
  const kept = before?.key ?? copiedText(key)
  keys.set(kept, { key: kept, fullAt, windowEnd })
  return isNew
}

/** The window of the policy that denied, in milliseconds. */
function windowOf(decision: Decision): number {
  return decision.policies.find(({ name }) => name === decision.policy)!.windowMs
}
