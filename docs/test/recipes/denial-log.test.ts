import { redisStore } from '@sluice/core/redis'
import { startRedis } from '@sluice/harness/redis'
import { hashKey } from '@sluice/metrics'
import { loggedApp } from '../../recipes/denial-log.js'
import { closeServers, serve } from './served.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  await closeServers()
  for (const close of closing.splice(0)) await close()
})

it('logs one line for each denial, with the id of its own request, and nothing else', async () => {
  const server = await startRedis()
  const store = redisStore({ host: server.host, port: server.port })
  closing.push(
    () => store.close(),
    () => server.stop(),
  )
  const written: string[] = []
  const origin = await serve(loggedApp({ write: (line) => void written.push(line) }, store))
  const responses = await Promise.all(Array.from({ length: 130 }, () => fetch(origin)))
  const denied = responses.filter(({ status }) => status === 429)
  expect(denied.length).toBeGreaterThan(25)
  const lines = written.map((line) => JSON.parse(line) as Record<string, unknown>)
  const ids = denied.map(({ headers }) => headers.get('x-request-id'))
  expect(new Set(lines.map(({ id }) => id))).toEqual(new Set(ids))
  expect(lines).toHaveLength(denied.length)
  for (const { level: _level, time: _time, pid: _pid, hostname: _hostname, ...line } of lines) {
    expect(line).toEqual({
      msg: 'denied',
      key: hashKey('ip:127.0.0.1'),
      policy: '100-per-1m',
      retryAfterMs: expect.any(Number),
      id: expect.any(String),
    })
  }
  expect(written.join('')).not.toContain('127.0.0.1')
})
