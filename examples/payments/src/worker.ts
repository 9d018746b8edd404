import { memoryStore, type Store } from '@sluice/core'
import type { OutboundEvent } from '@sluice/outbound'
import { openGateway } from './outbound.js'

/** One worker's share of the work. */
export interface Job {
  readonly worker: number
  readonly origin: string
  readonly payments: number
  /** A customer pays as often as this while the batch runs. */
  readonly customerEachMs: number | undefined
}

/** What a worker tells while it works. */
export type News =
  | {
      readonly type: 'paid'
      readonly worker: number
      readonly who: 'batch' | 'customer'
      readonly tookMs: number
    }
  | { readonly type: 'failed'; readonly worker: number; readonly message: string }
  | { readonly type: 'event'; readonly worker: number; readonly event: OutboundEvent['type'] }
  | { readonly type: 'done'; readonly worker: number }

/** Payments that one worker has under way or waiting; the limits decide when each goes out. */
const LANES = 10

/** Pays its share of the batch, and for a customer now and then. Ends when the batch is done or `signal` aborts. */
export async function work(
  job: Job,
  tell: (news: News) => void,
  signal: AbortSignal,
  store: Store = memoryStore(),
): Promise<void> {
  const { worker, origin, payments, customerEachMs } = job
  const gateway = openGateway(origin, store, ({ type }) => tell({ type: 'event', worker, event: type }))
  let next = 0
  let customers = 0

  async function pay(id: string, who: 'batch' | 'customer'): Promise<void> {
    const start = performance.now()
    try {
      await gateway.pay({ id, amount: 100 }, who)
      tell({ type: 'paid', worker, who, tookMs: performance.now() - start })
    } catch (error) {
      if (!signal.aborted) tell({ type: 'failed', worker, message: (error as Error).message })
    }
  }

  async function lane(): Promise<void> {
    while (next < payments && !signal.aborted) await pay(`batch-${worker}-${++next}`, 'batch')
  }

  const paying: Promise<void>[] = []
  const timer =
    customerEachMs === undefined
      ? undefined
      : setInterval(() => paying.push(pay(`customer-${worker}-${++customers}`, 'customer')), customerEachMs)
  const closed = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => void gateway.close().then(resolve), { once: true })
  })
  await Promise.race([Promise.all(Array.from({ length: LANES }, lane)), closed])
  clearInterval(timer)
  await Promise.race([Promise.all(paying), closed])
  await gateway.close()
  tell({ type: 'done', worker })
}
