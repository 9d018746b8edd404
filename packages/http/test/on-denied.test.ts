import { createLimiter, slidingLog } from '@sluice/core'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createGuard, limitedListener } from '../src/index.js'
import { FROM_HOME, plain, PlainResponse } from './plain-platform.js'

describe('an onDenied that has not answered', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  it.each<[string, () => unknown]>([
    ['nothing', () => {}],
    ['a promise of nothing', async () => {}],
    ['the length of a queue', () => [].push()],
    ['a timer', () => setTimeout(() => {}, 60_000)],
    ['the response', () => res],
  ])('and returned %s is reported once after a second', async (_, onDenied) => {
    const { deny, warnings } = denying(onDenied)
    await deny()
    await jest.advanceTimersByTimeAsync(999)
    expect(warnings).toEqual([])
    await jest.advanceTimersByTimeAsync(1)
    expect(warnings).toEqual([expect.stringMatching(/^ANSWER_MISSING: onDenied /)])
    await deny()
    await jest.advanceTimersByTimeAsync(5000)
    expect(warnings).toHaveLength(1)
  })

  it('is not reported if it answers within that second', async () => {
    const { deny, warnings } = denying(() => setTimeout(() => (res.headersSent = true), 900))
    await deny()
    await jest.advanceTimersByTimeAsync(5000)
    expect(warnings).toEqual([])
  })

  it('is not reported if the caller hangs up meanwhile', async () => {
    const onHungUp = (_req: unknown, _res: unknown, listener: () => void) => (listener(), () => {})
    const { deny, warnings } = denying(() => {}, { answersLate: true, onHungUp })
    await deny()
    await jest.advanceTimersByTimeAsync(5000)
    expect(warnings).toEqual([])
  })

  it('keeps no process alive, and has one timer for all that wait', async () => {
    const timers = jest.spyOn(global, 'setTimeout')
    const { deny } = denying(() => {})
    for (let i = 0; i < 9; i++) await deny()
    expect(timers).toHaveBeenCalledTimes(1)
    expect((timers.mock.results[0]!.value as NodeJS.Timeout).hasRef()).toBe(false)
  })

  it('is left alone on a platform that gets the result', async () => {
    const { deny, warnings } = denying(() => {}, { answersLate: false })
    await deny()
    await jest.advanceTimersByTimeAsync(5000)
    expect(warnings).toEqual([])
  })

  let res: PlainResponse

  function denying(onDenied: () => unknown, platform: Partial<typeof plain> = { answersLate: true }) {
    const limiter = createLimiter({ policies: [slidingLog({ limit: 1, window: '1m' })] })
    const warnings: string[] = []
    limiter.on('warning', ({ code, message }) => void warnings.push(`${code}: ${message}`))
    const guard = createGuard({ limiter, cost: () => 2, onDenied }, { ...plain, ...platform })
    return { warnings, deny: () => guard({ ...FROM_HOME }, (res = new PlainResponse())) }
  }
})

describe('limitedListener', () => {
  it.each<[string, (res: ServerResponse) => unknown, string | undefined, string]>([
    ['text', () => 'slow down', undefined, 'slow down'],
    ['bytes', async () => Buffer.from('slow down'), undefined, 'slow down'],
    ['an object', () => ({ error: 'slow down' }), 'application/json', '{"error":"slow down"}'],
    ['what it has sent before', (res) => (res.end('sent'), 'returned'), undefined, 'sent'],
  ])('sends what onDenied returns: %s', async (_, answer, type, text) => {
    const onDenied = (_req: unknown, res: ServerResponse) => answer(res)
    const options = { limit: 1, window: '1m', cost: () => 2, onDenied } as const
    const server = createServer(limitedListener(() => {}, options))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect([response.status, await response.text()]).toEqual([429, text])
    expect(response.headers.get('content-type')).toBe(type ?? null)
    server.close()
  })
})
