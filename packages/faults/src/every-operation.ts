import { createLimiter, type Policy, type Store } from '@sluice/core'

/** Does all that a limiter can do, so that every command of its script is run. Takes a few windows of the policy. */
export async function everyOperation(
  store: Store,
  policy: Policy,
  key: string,
  deadline: '1s' | '10s',
): Promise<void> {
  const limiter = createLimiter({ name: 'all', policies: [policy], store, deadline, onStoreError: 'throw' })
  limiter.on('warning', () => {}) // clients with default settings replay
  for (let i = 0; i < policy.limit; i++) await limiter.consume(key)
  await Promise.all(Array.from({ length: CROWD }, (_, i) => limiter.consume(`${key} ${i}`)))
  const leaving = new AbortController()
  await Promise.all([
    limiter.acquire(key, { signal: leaving.signal }).catch(unlessLeft),
    limiter.peek(key).finally(() => leaving.abort(LEFT)),
  ])
  await limiter.acquire(key)
  const decision = await limiter.acquire(key, { cost: 2 })
  await decision.settle(3)
  await limiter.refund(key)
  await limiter.hold(key, '10ms')
  await limiter.block(key, '10ms')
  await limiter.reset(key)
  await limiter.consume(key)
  await limiter.close()
}

/** So many at once that some of them travel together. */
const CROWD = 16

const LEFT = 'does not want to wait any longer'

/** Throws a reason that is not the one with which waiting calls are given up. */
function unlessLeft(reason: unknown): void {
  if (reason !== LEFT) throw reason
}
