import { createLimiter, createSemaphore, gcra, memoryStore, type Store } from '@sluice/core'
import { createQueue, limitFetch } from '@sluice/outbound'
import { createHmac } from 'node:crypto'

export interface Webhook {
  /** The same for every attempt, so that the receiver can ignore what it has seen. */
  readonly id: string
  readonly url: string
  readonly event: unknown
}

export interface Sender {
  /** Resolves when the receiver has taken the webhook. Rejects when it refused it, or was not reached in five attempts. */
  send(webhook: Webhook): Promise<void>
  close(): Promise<void>
}

/**
 * Sends webhooks. Each receiver, by the origin of its URL, gets at most 10 a second and 3 at once from all processes that share
 * `store`, so that one of them with a million events or a slow server delays its own alone. A 429 or 503 with `Retry-After` holds
 * back all calls to that receiver. A failed attempt is repeated after 1, 2, 4 and 8 minutes.
 *
 * What waits here is lost with the process: keep webhooks in your database or job queue until `send` resolves.
 */
export function webhooks(secret: string, store: Store = memoryStore(), fetching = fetch): Sender {
  const limiter = createLimiter({
    name: 'webhooks',
    policies: [gcra({ limit: 10, window: '1s', burst: 3 })],
    store,
  })
  const post = limitFetch(fetching, {
    limiter,
    semaphore: createSemaphore({ name: 'webhooks', limit: 3, store }),
    // The receiver recognizes an id that it has seen, so a POST may be sent again.
    isRetryable: () => true,
    retries: 5,
    maxWait: '1h',
    maxHold: '1h',
  })
  // Repeats what failed, and bounds what waits in this process for a receiver: 100 in `post`, and 10,000 behind them.
  const queue = createQueue({
    semaphore: createSemaphore({ limit: 100 }),
    maxWait: '1d',
    maxQueue: 10_000,
    retry: (error, attempt) => !(error instanceof RefusedError) && attempt < 5 && 2 ** (attempt - 1) * 60_000,
  })

  async function attempt({ id, url, event }: Webhook): Promise<void> {
    const body = JSON.stringify(event)
    const timestamp = String(Math.floor(Date.now() / 1000))
    const signature = createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')
    const response = await post(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': timestamp,
        'webhook-signature': `v1,${signature}`,
      },
      body,
      redirect: 'manual', // a receiver must not choose where the event goes
      signal: AbortSignal.timeout(3_600_000),
    })
    await response.body?.cancel() // the permit is free only when the body is read or cancelled
    if (response.ok) return
    const isTemporary = response.status >= 500 || [408, 429].includes(response.status)
    if (isTemporary) throw new Error(`${id}: ${response.status} from ${url}`)
    throw new RefusedError(`${id}: ${response.status} from ${url}`)
  }

  return {
    send: (webhook) => queue.run(() => attempt(webhook), { key: new URL(webhook.url).origin }),
    close: async () => {
      await queue.close()
      await limiter.close()
    },
  }
}

/** The receiver will not take it later either: switch its webhooks off after some of these. */
export class RefusedError extends Error {}
