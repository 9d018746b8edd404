import { setTimeout as sleep } from 'node:timers/promises'

/** Callers who send at a steady rate, whatever the answers are. */
const CALLERS = [
  { user: 'pro:alice', method: 'POST', path: '/orders', perSecond: 8 },
  { user: 'free:bob', method: 'POST', path: '/orders', perSecond: 4 },
  { user: 'free:carol', method: 'POST', path: '/orders', perSecond: 3 },
  { user: 'pro:dave', method: 'GET', path: '/search', perSecond: 24 },
  { user: 'free:erin', method: 'GET', path: '/search', perSecond: 10 },
  { user: 'free:frank', method: 'GET', path: '/report', perSecond: 12 },
]

/** Sends the requests of all callers until `signal` aborts. Returns how many each path got. */
export async function sendTraffic(origin: string, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
  const sent = new Map<string, number>()
  const startedAt = performance.now()
  await Promise.all(
    CALLERS.map(async ({ user, method, path, perSecond }) => {
      const calls: Promise<unknown>[] = []
      for (let call = 0; !signal.aborted; call++) {
        const dueAt = startedAt + (call * 1000) / perSecond
        await sleep(Math.max(0, dueAt - performance.now()), undefined, { signal }).catch(() => {})
        if (signal.aborted) break
        calls.push(fetch(`${origin}${path}`, { method, headers: { 'x-user': user } }).then((r) => r.text()))
        sent.set(path, (sent.get(path) ?? 0) + 1)
      }
      await Promise.all(calls)
    }),
  )
  return sent
}
