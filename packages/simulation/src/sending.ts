import type { Member } from './member.js'
import type { Call } from './plan.js'
import { isFetched, isUrgent, type Provider, Refused } from './provider.js'

/** Calls the provider, half of all calls by the queue. The caller hangs up in the end. */
export async function send(
  { id, hangsUp, maxWait }: Call,
  member: Member,
  provider: Provider,
): Promise<void> {
  const { client, process, world } = member
  const caller = new AbortController()
  const { signal } = caller
  world.after((hangsUp ?? 3000 + maxWait) * 1000, process, () => caller.abort(new Error('hung up')))
  const url = `https://provider/?call=${id}`
  if (isFetched(id)) {
    const response = await client.limited(url, { signal })
    const arrival = provider.arrivals.findLast(({ call }) => call === id)!
    arrival.lateMs = process.core.decisionOf(response)!.lateMs
    return
  }
  const once = async (lateMs: number): Promise<void> => {
    const reply = provider.fetchOf(process)(url, { signal })
    provider.arrivals.at(-1)!.lateMs = lateMs
    const response = await reply
    if (!response.ok) throw new Refused(response)
  }
  const options = { signal, priority: isUrgent(id) ? 1 : 0 }
  await client.queue.run(({ decision }) => once(decision.lateMs), options)
}
