import type { MaybePromise } from '../stores/store.js'
import type { Permit } from '../values/permit.js'
import { Decision } from './decision.js'

/** A permit as a part of a call on several keys: it is taken without waiting, as by `acquire(key, { maxWait: 0 })`. */
export interface PermitPart {
  readonly semaphore: PermitSource
  /** @default '': the semaphore's permits without a key */
  readonly key?: string
}

/** A semaphore, made by `createSemaphore`. */
export interface PermitSource {
  readonly name: string
  acquire(key: string, options: { readonly maxWait: 0 }): Promise<Permit>
  limitOf(key?: string): number
}

/** Whether a part takes a permit, as it names a semaphore. */
export function isPermitPart(part: unknown): part is PermitPart {
  return (part as Partial<PermitPart> | undefined)?.semaphore !== undefined
}

/**
 * Takes a permit of each part, all at once and without waiting, and then has `decide` charge the keys of the call. Returns what
 * `combine` makes of the decisions and of the permits. The call holds the permits if all decisions allow it. Otherwise, and if `decide`
 * or a semaphore fails, they are released first. If a permit is refused, no key is asked about, and the one decision is the refusal;
 * but a part with `enforce: false` goes on without its permit.
 *
 * Permits come first because they are given back exactly: a charge that is given back may have drained or left its window.
 */
export async function permitsFirst<T>(
  parts: readonly (PermitPart & { readonly enforce?: boolean })[],
  decide: () => MaybePromise<readonly Decision[]>,
  combine: (decisions: readonly Decision[], permits: readonly Permit[]) => MaybePromise<T>,
): Promise<T> {
  const asked = parts.map(async ({ semaphore, key = '' }) => semaphore.acquire(key, { maxWait: 0 }))
  const taken = await Promise.allSettled(asked)
  const permits = taken.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  const release = (): void => {
    for (const permit of permits) permit.release('failed').catch(() => {}) // it says nothing about an adaptive limit
  }
  try {
    await Promise.all(asked) // rejects as the first that failed
    const refusedIndex = permits.findIndex(({ allowed }, i) => !allowed && parts[i]!.enforce !== false)
    const decisions = refusedIndex < 0 ? await decide() : [refusalOf(parts[refusedIndex]!)]
    if (decisions.every(({ allowed }) => allowed)) return combine(decisions, permits)
    release()
    return combine(decisions, [])
  } catch (error) {
    release()
    throw error
  }
}

/**
 * Makes the decision about a call that got no permit of a semaphore: denied with the reason 'concurrency'. The semaphore stands in it as a
 * limiter with one policy, whose capacity is the most permits. Nothing says when one is released, so no wait is named.
 */
function refusalOf({ semaphore, key = '' }: PermitPart): Decision {
  const { name } = semaphore
  const capacity = semaphore.limitOf(key)
  const source = { limiter: name, policies: [{ name, capacity, windowMs: 0 }], enforce: true }
  const answer = { reason: 'concurrency', binding: 0, remaining: 0, now: 0, at: 0, resetAt: 0 }
  // A refusal has charged nothing, so that it needs no state behind it.
  return new Decision(source as never, answer as never, key, undefined)
}
