import { giveBack } from '../stores/giving-back.js'
import type { Answer, Keyspace, MaybePromise } from '../stores/store.js'
import type { Deadline } from './deadline.js'
import type { Denials } from './denial-cache.js'
import type { StoreChannel } from './store-channel.js'

/** Where a booking was made. */
interface BookedIn {
  readonly remote: Keyspace
  readonly channel: StoreChannel
  readonly deadline: Deadline
  readonly denials: Denials | undefined
}

/**
 * Gives back a booking whose answer came too late for its caller. That is sent while the circuit is open too, because the
 * store has just answered, and waits for room beyond the deadline, at which this resolves. If it fails, the place stays
 * unused.
 */
export async function giveBackLate(
  { remote, channel, deadline, denials }: BookedIn,
  key: string,
  cost: number,
  late: Answer,
): Promise<void> {
  const send = <T>(call: () => MaybePromise<T>): Promise<T> =>
    new Promise((answered, failed) =>
      channel.sendPatiently(call, deadline, { overdue: failed, answered, failed, answeredTooLate() {} }),
    )
  const sender = {
    cancel: (...args: Parameters<Keyspace['cancel']>) => send(() => remote.cancel(...args)),
    correct: (...args: Parameters<Keyspace['correct']>) => send(() => remote.correct(...args)),
  }
  try {
    await giveBack(sender, key, cost, late)
  } catch {
    // the place stays unused, or is given back later
  } finally {
    denials?.forget(key)
  }
}
