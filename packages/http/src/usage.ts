import type { Decision, PartOptions } from '@sluice/core'
import { ExpiringMap, nowMs } from '@sluice/core/internal'
import type { RequestLimitOptions } from './options.js'
import type { Platform } from './platform.js'
import type { AskAboutSeveral } from './several-limits.js'

/**
 * Answers requests, in place of a decision, with how the keys of their caller stand. The store is asked once a second a key. Who is
 * blocked, or cannot be counted under `onStoreError: 'deny'`, is answered as the limit answers.
 */
export function usageAnswer<Req, Res>(
  { plan }: RequestLimitOptions<Req, Res>,
  platform: Platform<Req, Res>,
): AskAboutSeveral<Req, Res> {
  const known = new ExpiringMap<{ readonly at: number; readonly peeked: Promise<Decision> }>(10_000, 1000)
  const peek = ({ limiter, key, policies }: PartOptions): Promise<Decision> => {
    const [id, at] = [JSON.stringify([limiter.name, key, policies]), nowMs()]
    const last = known.get(id)
    if (last && at - last.at < 1000) return last.peeked
    const peeked = limiter.peek(key, policies && { policies })
    known.set(id, { at, peeked }, at)
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
