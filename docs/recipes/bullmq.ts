import { type Limiter } from '@sluice/core'
import { DelayedError, type Job, UnrecoverableError } from 'bullmq'

/*
 * A limit for each group of a BullMQ queue: a tenant, a customer, a host. A job over its group's limit goes back to the queue until
 * its turn, takes no attempt, and holds up no job of another group. Jobs that wait for the same instant compete for it again, so a
 * group is served at its limit, and nearly in order.
 */

/** The processor of a Worker: `new Worker('mails', perGroup(limiter, send), { connection })`. */
export function perGroup<Data extends { readonly group: string }, Result>(
  limiter: Limiter,
  process: (job: Job<Data>) => Promise<Result>,
) {
  return async function limitedByGroup(job: Job<Data>, token?: string): Promise<Result> {
    const decision = await limiter.consume(job.data.group)
    if (decision.allowed) return process(job)
    if (decision.retryAfterMs === Infinity) throw new UnrecoverableError('the limit of its group is 0')
    await job.moveToDelayed(Date.now() + decision.retryAfterMs, token)
    throw new DelayedError()
  }
}
