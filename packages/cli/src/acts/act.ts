import type { Duration, Explanation, Limiter } from '@sluice/core'

/** An act of an operator on a key. `duration` is that of a block or an exemption; `remove` ends the override of the key. */
export interface ActRequest {
  readonly act: 'unblock' | 'reset' | 'block' | 'exempt' | 'remove'
  readonly duration?: Duration | undefined
  readonly reason: string
  readonly by: string
}

/** An act that is worked out and not carried out yet. */
export interface PlannedAct {
  readonly limiter: string
  readonly key: string
  /** What it will do, in a sentence of English. */
  readonly will: string
  /** How a call on the key would be decided now. */
  readonly before: Explanation
  /** Carries it out by the limiter's own operation, and explains the key once more. */
  carryOut(): Promise<Explanation>
}

/** Works an act on a key out. Writes nothing. */
export async function planAct(limiter: Limiter, key: string, request: ActRequest): Promise<PlannedAct> {
  const before = await limiter.explain(key)
  const { act, duration = 0, reason, by } = request
  const [will, run] = {
    unblock: [
      `End the block; what was used still counts.${before.block ? '' : ' It is not blocked: this changes nothing.'}`,
      () => limiter.unblock(key),
    ],
    reset: ['Forget what was used, the block and the hold; an override stays.', () => limiter.reset(key)],
    block: [
      `Deny every call for ${duration}, under every list of policies; the latest block wins.`,
      () => limiter.block(key, duration, { reason, by }),
    ],
    exempt: [
      `Let every call pass uncounted for ${duration}, in every process within two seconds.${before.block ? ' Its block goes on: unblock it too.' : ''}`,
      () => limiter.override(key, { exempt: true, until: duration, reason, by }),
    ],
    remove: ['End the override; what was used still counts.', () => limiter.removeOverride(key)],
  }[act] as [string, () => Promise<unknown>]
  const carryOut = async (): Promise<Explanation> => {
    await run()
    return limiter.explain(key)
  }
  return { limiter: limiter.name, key, will, before, carryOut }
}
