import type { Adapter } from './adapter.js'
import { stopped, warningsOf } from './limits.js'
import { type Way, WAYS } from './ways.js'

/** What became of honest requests. */
export interface AfterRequests {
  /** How many were served. */
  readonly served: number
  readonly keys: readonly string[]
  readonly warnings: readonly string[]
  readonly errors: readonly unknown[]
}

/** Sends `count` requests to an application by one way, one after another. */
export async function afterRequests<Req, Res>(
  adapter: Adapter<Req, Res>,
  { trusted, open }: Way,
  count: number,
): Promise<AfterRequests> {
  const limiter = stopped(count)
  const [warnings, keys, errors] = [warningsOf(limiter), new Set<string>(), [] as unknown[]]
  limiter.on('decision', ({ key }) => void keys.add(key))
  const trust = adapter.lacks?.['trusting a number of proxies'] ? ['127.0.0.1'] : 1
  const app = await adapter.serve({
    routes: [{ path: '/', limits: [{ limiter }], answer: () => ({ body: 'served' }) }],
    proxyTrust: trusted ? trust : 'none',
    onError: (error) => void errors.push(error),
  })
  const requests = await open(app)
  try {
    let served = 0
    for (let n = 0; n < count; n++) if ((await requests.send(n)) === 200) served++
    return { served, keys: [...keys], warnings, errors }
  } finally {
    await requests.close()
    await app.close()
  }
}

/** What has to become of them. */
export function expectedAfter({ key }: Way, count: number): AfterRequests {
  return { served: count, keys: [key], warnings: key === 'ip:unknown' ? ['ADDRESS_UNKNOWN'] : [], errors: [] }
}

export function unaddressedCases<Req, Res>(adapter: Adapter<Req, Res>): void {
  describe('callers that do not hang up', () => {
    it.each(WAYS.map((way) => [way.name, way] as const))('are served over %s', async (_, way) => {
      expect(await afterRequests(adapter, way, 50)).toEqual(expectedAfter(way, 50))
    })
  })
}
