import type { Adapter } from './adapter.js'
import { stopped, warningsOf } from './limits.js'
import type { Trial } from './trial.js'
import { type Way, WAYS } from './ways.js'

/** Honest requests without an address are all served, and so are those whose address is not that of their connection. */
export function unaddressedTrials<Req, Res>(adapter: Adapter<Req, Res>): readonly Trial[] {
  return WAYS.map((way) => ({
    name: `are served over ${way.name}`,
    needs: way.feature ? [way.feature] : [],
    run: (count) => sendAll(adapter, way, count),
  }))
}

/**
 * Sends `count` requests to a limited application in one way, over which callers may have no address. Returns what was wrong: a status
 * other than 200, or another key or warning than is due.
 */
async function sendAll<Req, Res>(
  adapter: Adapter<Req, Res>,
  { trusted, key, warning, open }: Way,
  count: number,
): Promise<string[]> {
  const limiter = stopped(count)
  const [warnings, keys, wrong] = [warningsOf(limiter), new Set<string>(), [] as string[]]
  limiter.on('decision', (event) => void keys.add(event.key))
  const app = await adapter.serve({
    routes: [{ path: '/', limits: [{ limiter }], answer: () => ({ body: 'served' }) }],
    proxyTrust: trusted ? 1 : 'none',
    onError: (error) => void wrong.push(String(error)),
  })
  const requests = await open(app)
  try {
    for (let n = 0; n < count; n++) {
      const status = await requests.send(n)
      if (status !== 200) wrong.push(`request ${n} was answered ${status}`)
    }
  } finally {
    await requests.close()
    await app.close()
  }
  const seen = [...keys, ...warnings].join()
  const due = [key, warning ?? []].flat().join()
  return seen === due ? wrong : [...wrong, `keys and warnings are ${seen} where ${due} are due`]
}
