import { execFile } from 'node:child_process'
import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Adapter } from './adapter.js'
import { stopped } from './limits.js'
import type { Serve } from './site.js'

const run = promisify(execFile)

/** How many requests make a load; `npm test` sends fewer. A twentieth of them are reset in trials. */
export const LOAD = Number(process.env.KIT_REQUESTS ?? 4000)

/** Declares the tests that every adapter has to pass about load: over 200 connections exactly the limit is admitted. */
export function loadCases<Req, Res>(_adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('exactly the limit is admitted', () => {
    it.each<[string, () => string | Promise<string>]>([
      ['a sync key', () => 'k'],
      ['an async key', async () => turn('k')],
    ])('of 200 requests at once, with %s', async (_, key) => {
      const site = await serve([{ limiter: stopped(100), key }])
      const replies = await Promise.all(Array.from({ length: 200 }, () => site.send()))
      const left = replies
        .filter(({ status }) => status === 200)
        .map(({ headers }) => Number(headers['x-ratelimit-remaining']))
      expect(left.sort((a, b) => b - a)).toEqual(Array.from({ length: 100 }, (_, i) => 99 - i))
      expect(replies.filter(({ status }) => status === 429)).toHaveLength(100)
      expect(site.handled).toBe(100)
    })

    it('of many requests over 200 connections', async () => {
      const limit = LOAD / 8
      const site = await serve([{ limiter: stopped(limit), key: () => 'k' }])
      const seen = await autocannon(`http://127.0.0.1:${site.port}/`)
      expect(seen).toMatchObject({ '2xx': limit, '4xx': LOAD - limit, '5xx': 0, errors: 0 })
      expect(site.handled).toBe(limit)
    })
  })
}

/**
 * Sends the requests of a load by autocannon, in a process of its own: in this one it would take turns with the server.
 * Returns its report.
 */
async function autocannon(url: string): Promise<unknown> {
  const load = ['--connections', '200', '--amount', String(LOAD), '--timeout', '600'] // a late answer is no error
  const args = [require.resolve('autocannon'), ...load, '--json', url]
  const { stdout } = await run(process.execPath, args)
  return JSON.parse(stdout)
}
