import type { Objects } from '../../recipes/durable-objects.js'
import { edgeApp, LimitState } from '../../recipes/edge.js'

/** One object for each name, as on the platform: its storage answers later, and requests to it may meet. */
function objectsOf(
  LimitClass = LimitState,
  storages = new Map<string, Map<string, unknown>>(),
  alarms: number[] = [],
) {
  const objects = new Map<string, LimitState>()
  const counts = { asked: 0 }
  const namespace: Objects = {
    idFromName: (name) => name,
    get: (name: string) => {
      let object = objects.get(name)
      if (!object) {
        const values = storages.get(name) ?? new Map<string, unknown>()
        storages.set(name, values)
        const storage = {
          get: async () => values.get('state') as never,
          put: async (_: string, value: unknown) => void values.set('state', structuredClone(value)),
          setAlarm: async (ms: number) => void alarms.push(ms),
          deleteAll: async () => values.clear(),
        }
        objects.set(name, (object = new LimitState({ storage })))
      }
      return { fetch: async (url, init) => (counts.asked++, object.fetch(new Request(url, init))) }
    },
  }
  return { namespace, objects, storages, alarms, counts }
}

describe('the recipe for the edge', () => {
  const get = async (app: ReturnType<typeof edgeApp>, address = '203.0.113.7') =>
    app.request('/', { headers: { 'cf-connecting-ip': address } })
  /** Four requests at a time. */
  const statuses = async (app: ReturnType<typeof edgeApp>, times: number, address?: string) => {
    const seen: number[] = []
    for (let left = times; left > 0; left -= 4) {
      const together = await Promise.all(Array.from({ length: Math.min(4, left) }, () => get(app, address)))
      seen.push(...together.map(({ status }) => status))
    }
    return seen
  }
  const count = (list: readonly number[], status: number) => list.filter((each) => each === status).length

  it('holds one limit over isolates that share nothing but the objects, for calls that meet too', async () => {
    const { namespace } = objectsOf()
    const isolates = [edgeApp(namespace, '20s'), edgeApp(namespace, '20s'), edgeApp(namespace, '20s')]
    const seen = (await Promise.all(isolates.map((app) => statuses(app, 40)))).flat()
    expect([count(seen, 200), count(seen, 429)]).toEqual([100, 20])
    expect(await statuses(isolates[0]!, 1, '203.0.113.8')).toEqual([200])
    expect(await statuses(isolates[0]!, 1, '2001:db8::1')).toEqual([200])
  })

  it('asks an object once for each decision', async () => {
    const { namespace, counts } = objectsOf()
    await statuses(edgeApp(namespace, '20s'), 50)
    expect(counts.asked).toBe(50)
  })

  it('goes on with what an object has stored after the object has left the memory', async () => {
    const { namespace, objects } = objectsOf()
    await statuses(edgeApp(namespace, '20s'), 60)
    objects.clear()
    expect(count(await statuses(edgeApp(namespace, '20s'), 60), 200)).toBe(40)
  })

  it('asks no object about a caller that was denied a moment ago', async () => {
    const { namespace, counts } = objectsOf()
    const app = edgeApp(namespace, '20s')
    await statuses(app, 101)
    const { asked } = counts
    expect([await statuses(app, 5), counts.asked]).toEqual([Array(5).fill(429), asked])
  })

  it('keeps a state until its alarm, which deletes it', async () => {
    const { namespace, objects, storages, alarms } = objectsOf()
    const before = Date.now()
    await get(edgeApp(namespace, '20s'))
    expect(alarms[0]).toBeGreaterThanOrEqual(before + 61_000)
    const [[name, object]] = [...objects] as [[string, LimitState]]
    await object.alarm()
    expect(storages.get(name)!.size).toBe(0)
  })

  it('lets requests pass while the objects do not answer', async () => {
    const app = edgeApp({
      idFromName: (name) => name,
      get: () => ({ fetch: () => Promise.reject(new Error('down')) }),
    })
    expect(await statuses(app, 120)).toEqual(Array(120).fill(200))
  })
})
