import { createLimiter, createSemaphore, gcra, type Store } from '@sluice/core'
import { limitFetch } from '@sluice/outbound'

/** The provider takes 200 calls in 10 s, and 5 at once. 98 % of that, evenly: one each 51 ms, over all workers. */
export const ours = { limit: 196, window: '10s', burst: 1, atOnce: 5 } as const

export type Who = 'batch' | 'customer'

/** How a payment went: the time from the wish to the answer, or why it failed. */
export type Outcome = { readonly who: Who } & ({ readonly tookMs: number } | { readonly failed: string })

/** One worker's share of the work. */
export interface Job {
  readonly worker: number
  /** Of the provider. */
  readonly origin: string
  readonly payments: number
  /** A customer pays as often as this while the batch runs; 0: none does. */
  readonly customerEachMs: number
}

/** Payments that one worker has in flight or waiting; the limits decide when each goes out. */
const LANES = 10

/** Makes its share of the payments, and a customer's now and then. All workers that share `store` share the limits. */
export async function work(
  { worker, origin, payments, customerEachMs }: Job,
  store: Store,
  report: (outcome: Outcome) => void,
  signal: AbortSignal,
): Promise<void> {
  const { limit, window, burst, atOnce } = ours
  const policies = [gcra({ limit, window, burst })]
  // 'throw': no call goes out uncounted.
  const limiter = createLimiter({ name: 'provider', policies, store, onStoreError: 'throw', deadline: '1s' })
  const semaphore = createSemaphore({ name: 'provider', limit: atOnce, lease: '5s', store, deadline: '1s' })
  const options = { limiter, semaphore, maxWait: '10m', retries: 5 } as const
  // A customer, who waits for the answer, goes before the batch.
  const fetches = {
    batch: limitFetch(fetch, options),
    customer: limitFetch(fetch, { ...options, priority: 1 }),
  }

  async function pay(id: string, who: Who): Promise<void> {
    const startedAt = performance.now()
    try {
      const response = await fetches[who](`${origin}/payments`, {
        method: 'POST',
        // The provider recognises a payment by this key, so limitFetch may send a POST again after a 503.
        headers: { 'Content-Type': 'application/json', 'Idempotency-Key': id },
        body: JSON.stringify({ amount: 100 }),
        signal,
      })
      await response.text()
      if (!response.ok) throw new Error(`payment ${id}: status ${response.status}`)
      report({ who, tookMs: performance.now() - startedAt })
    } catch (error) {
      if (!signal.aborted) report({ who, failed: (error as Error).message })
    }
  }

  let paid = 0
  async function lane(): Promise<void> {
    while (paid < payments && !signal.aborted) await pay(`batch-${worker}-${++paid}`, 'batch')
  }

  const customers: Promise<void>[] = []
  const payCustomer = () => customers.push(pay(`customer-${worker}-${customers.length}`, 'customer'))
  const timer = customerEachMs > 0 ? setInterval(payCustomer, customerEachMs) : undefined
  await Promise.all(Array.from({ length: LANES }, lane))
  clearInterval(timer)
  await Promise.all(customers)
  await Promise.all([limiter.close(), semaphore.close()])
}
