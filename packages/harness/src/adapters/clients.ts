import { execFile } from 'node:child_process'
import { resolve } from 'node:path'
import { promisify } from 'node:util'
import { createLimiter, slidingLog } from '@sluice/core'
import type { Adapter } from './adapter.js'
import type { Serve } from './site.js'

const run = promisify(execFile)

/** In a process of its own, where they are the ES modules that they are elsewhere. */
const SCRIPT = resolve('packages/harness/src/adapters/real-clients.js')
const CLIENTS = ['got', 'ky', 'axios-retry', 'undici']

/** Declares the tests that every adapter has to pass about clients that retry by themselves: they wait as Retry-After says, and pass then. */
export function clientCases<Req, Res>(adapter: Adapter<Req, Res>, serve: Serve<Req, Res>): void {
  describe('clients that retry by themselves', () => {
    it('got, ky, axios-retry and undici obey Retry-After, and pass then', async () => {
      const limiter = createLimiter({ name: 'api', policies: [slidingLog({ limit: 1, window: '1s' })] })
      const admitted: Record<string, boolean[]> = {}
      limiter.on('decision', ({ key, decision }) => void (admitted[key] ??= []).push(decision.allowed))
      const key = (req: Req) => adapter.header(req, 'x-client')!
      const site = await serve([{ limiter, key, headers: ['x-ratelimit', 'ietf'] }])
      const { stdout } = await run(process.execPath, [SCRIPT, `http://127.0.0.1:${site.port}/`], {
        timeout: 25_000,
      })
      const each = (value: unknown) => Object.fromEntries(CLIENTS.map((client) => [client, value]))
      expect(JSON.parse(stdout)).toEqual(each([200, 200]))
      // A client that came early was denied once more.
      expect(admitted).toEqual(each([true, false, true]))
    })
  })
}
