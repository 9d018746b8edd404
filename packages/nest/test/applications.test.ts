import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type RedisServer, startRedis } from '@sluice/harness/redis'

let server: RedisServer
beforeEach(async () => (server = await startRedis()))
afterEach(() => server.stop())

describe('two applications of one module', () => {
  // A store in memory that the module makes is one for each application.
  it.each([
    ['handed in', 'memory', [200, 429]],
    ['made', 'memory', [200, 200]],
    ['handed in', 'Redis', [200, 429]],
    ['made', 'Redis', [200, 429]],
  ])(
    'are limited, one after the other, by a store that is %s, in %s, and the process ends',
    async (given, kind, statuses) => {
      const url = kind === 'Redis' ? [`redis://127.0.0.1:${server.port}`] : []
      const program = join(__dirname, 'applications.js')
      const { stdout } = await promisify(execFile)(process.execPath, [program, given, ...url], {
        timeout: 20_000,
      })
      expect(JSON.parse(stdout)).toEqual({ statuses, outbound: 'sent' })
    },
    30_000,
  )
})
