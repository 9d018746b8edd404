import type { Duration, Explanation, Limiter } from '@sluice/core'
import { storedKey } from '@sluice/core/internal'

/** What an operator may do to a key. */
export type ActName = 'unblock' | 'reset' | 'block' | 'exempt'

export interface ActRequest {
  readonly act: ActName
  /** Of a block and an exemption: how long. */
  readonly duration?: Duration | undefined
  /** Of an exemption: whether it, or another override of the key, is ended. */
  readonly isRemoval?: boolean
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
  const { will, run } = operationOf(limiter, key, request, before)
  const carryOut = async (): Promise<Explanation> => {
    await run()
    return limiter.explain(key)
  }
  return { limiter: limiter.name, key, will, before, carryOut }
}

interface Operation {
  readonly will: string
  run(): Promise<unknown>
}

function operationOf(limiter: Limiter, key: string, request: ActRequest, before: Explanation): Operation {
  const { act, duration = 0, isRemoval, reason, by } = request
  if (act === 'unblock') {
    const why = before.block ? '' : ' It is not blocked: this changes nothing.'
    return { will: `End the block; what was used still counts.${why}`, run: () => limiter.unblock(key) }
  }
  if (act === 'reset')
    return {
      will: 'Forget what was used, the block and the hold; an override stays.',
      run: () => limiter.reset(key),
    }
  if (act === 'block') {
    const will = `Deny every call for ${duration}, under every list of policies; the latest block wins.`
    return { will, run: () => limiter.block(key, duration, { reason, by }) }
  }
  if (isRemoval)
    return { will: 'End the override; what was used still counts.', run: () => limiter.removeOverride(key) }
  const blocked = before.block ? ' Its block goes on: unblock it too.' : ''
  const will = `Let every call pass uncounted for ${duration}, in every process within two seconds.${blocked}`
  return { will, run: () => limiter.override(key, { exempt: true, until: duration, reason, by }) }
}
