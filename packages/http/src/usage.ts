import type { Decision, PartOptions } from '@sluice/core'
import { ExpiringMap, nowMs } from '@sluice/core/internal'
import type { RequestLimitOptions } from './options.js'
import type { Platform } from './platform.js'
import type { AskAboutSeveral } from './several-limits.js'

/**
 * Makes the function that answers a request with its caller's usage, in place of a decision: how his key stands under each limit
 * (`parts`), asked of the store at most once a second. A caller who is blocked, or cannot be counted under `onStoreError: 'deny'`,
 * is answered by `ask`, as the limit answers him.
 */
export function usageAnswer<Req, Res>(
  { plan }: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
): AskAboutSeveral<Req, Res> {
  const peeks = new ExpiringMap<{ readonly at: number; readonly peeked: Promise<Decision> }>(
    MOST_KEYS,
    FRESH_MS,
  )
  /** How a key stands under one limit, as it was read within the last second or is read now. */
  const peek = ({ limiter, key, policies }: PartOptions): Promise<Decision> => {
    const [id, now] = [JSON.stringify([limiter.name, key, policies]), nowMs()]
    const last = peeks.get(id)
    if (last && now - last.at < FRESH_MS) return last.peeked
    const peeked = limiter.peek(key, policies && { policies })
    peeks.set(id, { at: now, peeked }, now)
    return peeked
  }
  return async (req, parts, ask, res) => {
    const decisions = await Promise.all(parts.map(peek))
    const isBarred = decisions.some(({ reason }) => reason === 'blocked' || reason === 'degraded')
    const denied = isBarred && (await ask())
    if (denied) return denied
    const limits = decisions.map(({ limiter, degraded, policies }) => {
      return { limiter, view: degraded ? 'process' : 'store', policies }
    })
    const usage = { plan: await plan?.(req), limits }
    platform.setStatus(res, 200)
    platform.setHeader(res, 'Cache-Control', 'no-store')
    platform.setHeader(res, 'Content-Type', 'application/json')
    return { answer: platform.send(req, res, usage, JSON.stringify(usage)) }
  }
}

/** The time for which what was read of a key is answered again, and the most keys of which it is kept. */
const FRESH_MS = 1000
const MOST_KEYS = 10_000
