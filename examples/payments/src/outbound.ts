import { createLimiter, createSemaphore, gcra, type Store } from '@sluice/core'
import { limitFetch, type OutboundEvent } from '@sluice/outbound'

/** The provider takes 200 calls in 10 s, and 5 at once. 98 % of that, evenly: one each 51 ms, over all processes. */
export const ours = { limit: 196, window: '10s', burst: 1, atOnce: 5 } as const

export interface Payment {
  readonly id: string
  readonly amount: number
}

export interface Gateway {
  /** Pays at the batch's pace, or ahead of the batch for a customer who waits. */
  pay(payment: Payment, who: 'batch' | 'customer'): Promise<void>
  close(): Promise<void>
}

/** All processes that share `store` share these limits. */
export function openGateway(origin: string, store: Store, onEvent: (event: OutboundEvent) => void): Gateway {
  const { limit, window, burst, atOnce } = ours
  const limiter = createLimiter({
    name: 'provider',
    policies: [gcra({ limit, window, burst })],
    store,
    onStoreError: 'throw', // no call goes out uncounted
    deadline: '1s',
  })
  const semaphore = createSemaphore({ name: 'provider', limit: atOnce, lease: '5s', store, deadline: '1s' })
  const options = { limiter, semaphore, maxWait: '10m', retries: 5, onEvent } as const
  const fetches = {
    batch: limitFetch(fetch, options),
    customer: limitFetch(fetch, { ...options, priority: 1 }),
  }
  return {
    async pay({ id, amount }, who) {
      const response = await fetches[who](`${origin}/payments`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': id },
        body: JSON.stringify({ amount }),
      })
      await response.text()
      if (!response.ok) throw new Error(`payment ${id}: status ${response.status}`)
    },
    async close() {
      await Promise.all([limiter.close(), semaphore.close()])
    },
  }
}
