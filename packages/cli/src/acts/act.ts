import type { CallOptions, Duration, Explanation, Limiter } from '@sluice/core'

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

/**
 * Plans an act of an operator on a key, for all `limiters` of one name: what it will do, and how a call on the key would be decided
 * now. Only `carryOut` writes: by each of the limiters, or for an override, which is one for the name, by the first.
 */
export async function planAct(
  limiters: readonly Limiter[],
  key: string,
  request: ActRequest,
): Promise<PlannedAct> {
  const before = await explained(limiters, key)
  const { act, duration = 0, reason, by } = request
  const [first] = limiters as [Limiter]
  const runForEach = (run: (limiter: Limiter) => Promise<void>) => () => Promise.all(limiters.map(run))
  const [will, run] = {
    unblock: [
      `End the block; what was used still counts.${before.block ? '' : ' It is not blocked: this changes nothing.'}`,
      runForEach((limiter) => limiter.unblock(key)),
    ],
    reset: [
      'Forget what was used, the block and the hold; an override stays.',
      runForEach((limiter) => limiter.reset(key)),
    ],
    block: [
      `Deny every call for ${duration}, under every list of policies; the latest block wins.`,
      runForEach((limiter) => limiter.block(key, duration, { reason, by })),
    ],
    exempt: [
      `Let every call pass uncounted for ${duration}, in every process within two seconds.${before.block?.by === 'an operator' ? ' Its block goes on: unblock it too.' : ''}`,
      () => first.override(key, { exempt: true, until: duration, reason, by }),
    ],
    remove: ['End the override; what was used still counts.', () => first.removeOverride(key)],
  }[act] as [string, () => Promise<unknown>]
  const carryOut = async (): Promise<Explanation> => {
    await run()
    return explained(limiters, key)
  }
  return { limiter: first.name, key, will, before, carryOut }
}

/**
 * Explains how a call on a key would be decided. Of several limiters of one name, the explanation is that of a limiter that denies
 * the call, or else of the one that has counted more of the key.
 */
export async function explained(
  limiters: readonly Limiter[],
  key: string,
  options?: CallOptions,
): Promise<Explanation> {
  const explanations = await Promise.all(limiters.map((limiter) => limiter.explain(key, options)))
  const usedOf = ({ policies }: Explanation): number => policies.reduce((sum, { used }) => sum + used, 0)
  const deniedFirst = (one: Explanation, other: Explanation): number =>
    Number(one.allowed) - Number(other.allowed) || usedOf(other) - usedOf(one)
  return explanations.toSorted(deniedFirst)[0]!
}
