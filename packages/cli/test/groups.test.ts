import { parseWhere } from '@sluice/policies'
import { readAll, sourceOf, sums } from './bytes.js'

const T = 1_760_104_536_000
const ADDRESS = '203.0.113.7'

/** A line of pino's, as Fastify logs a call in two: with the caller, and with the answer. */
const line = (ms: number, reqId: string, parts: object): string =>
  `${JSON.stringify({ level: 30, time: T + ms, pid: 7, hostname: 'web-1', reqId, ...parts })}\n`
const asked = (ms: number, id: string, remoteAddress = ADDRESS, more = {}): string =>
  line(ms, id, { req: { method: 'GET', url: '/a', remoteAddress }, ...more })
const answered = (ms: number, id: string, statusCode = 200, more = {}): string =>
  line(ms, id, { res: { statusCode }, responseTime: 5, ...more })

describe('a call in two lines', () => {
  it('has the caller of one, and the answer and the time of the other', async () => {
    const log =
      asked(0, 'req-1') + asked(1, 'req-2', '192.0.2.1') + answered(7, 'req-2', 429) + answered(9, 'req-1')
    const { reading, calls } = await readAll([sourceOf('a', log)])
    expect(calls.map(({ at, keys, denied, duration }) => [at / 1000 - T, keys[0], denied, duration])).toEqual(
      [
        [7, '192.0.2.1', true, 5000],
        [9, ADDRESS, false, 5000],
      ],
    )
    expect(sums(reading)).toEqual({ lines: 4, read: 4, skipped: {} })
  })

  it('counts for its address where the caller has no key', async () => {
    const withKey = (id: string) =>
      line(0, id, { req: { remoteAddress: ADDRESS, headers: { 'x-api-key': 'k' } } })
    const log = ['1', '2']
      .map((id) => withKey(id) + answered(1, id) + asked(2, `${id}a`) + answered(3, `${id}a`))
      .join('')
    const selectors = [{ by: 'header:x-api-key', orAddress: true }]
    const { calls } = await readAll([sourceOf('a', log)], { selectors })
    expect(calls.map(({ keys }) => keys[0])).toEqual(['k', 'k', ADDRESS, ADDRESS])
  })

  it('is joined by the id of its process: others have the same ids', async () => {
    const other = { pid: 8 }
    const log =
      asked(0, 'req-1') +
      asked(1, 'req-1', '192.0.2.1', other) +
      answered(2, 'req-1', 429) +
      answered(3, 'req-1', 200, other)
    const { calls } = await readAll([sourceOf('a', log)])
    expect(calls.map(({ keys, denied }) => [keys[0], denied])).toEqual([
      [ADDRESS, true],
      ['192.0.2.1', false],
    ])
  })

  it('of which only one line is there is not read, and counts as unread', async () => {
    const log =
      answered(0, 'req-0') + asked(1, 'req-1') + answered(2, 'req-1') + asked(3, 'req-2') + answered(4, '')
    const { reading } = await readAll([sourceOf('a', log)])
    expect(sums(reading)).toEqual({ lines: 5, read: 2, skipped: { 'no address': 2, 'half of a call': 1 } })
    expect(reading.ledger.unread).toBe(3)
  })

  it('waits for its answer with 10,000 others at most, for ten minutes, and with 8,192 characters', async () => {
    const begin = asked(0, 'a') + answered(1, 'a')
    const joined = async (...lines: string[]) =>
      (await readAll([sourceOf('a', begin, ...lines)])).calls.length - 1
    const many = (count: number) => Array.from({ length: count }, (_, i) => asked(3, `more-${i}`)).join('')
    expect(await joined(asked(2, 'b'), many(9_999), answered(4, 'b'))).toBe(1)
    expect(await joined(asked(2, 'b'), many(10_000), answered(4, 'b'))).toBe(0)
    expect(await joined(asked(2, 'b'), asked(600_002, 'c'), answered(600_003, 'b'))).toBe(1)
    expect(await joined(asked(2, 'b'), asked(600_003, 'c'), answered(600_004, 'b'))).toBe(0)
    expect(await joined(asked(2, 'b', ADDRESS, { text: 'x'.repeat(8_192) }), answered(4, 'b'))).toBe(0)
  })

  it('may have its id at a place that is named', async () => {
    const log = (asked(0, '1') + answered(1, '1')).replaceAll('reqId', 'trace')
    const statusIn = async (fields: Record<string, string>) =>
      (await readAll([sourceOf('a', log)], { fields })).reading.hasStatus
    expect([await statusIn({}), await statusIn({ id: 'trace' })]).toEqual([false, true])
  })

  it('is one call where no line with a status is known to be its answer, as of another program', async () => {
    const other = JSON.stringify({ time: T + 2, msg: 'charged', status: 200, duration_ms: 3 })
    const { calls } = await readAll([sourceOf('a', asked(0, 'r') + asked(1, 's') + other)])
    expect(calls).toHaveLength(2)
  })
})

describe('a caller', () => {
  const log = [ADDRESS, 'unix:', 'host.example'].map(
    (ip, i) => `${JSON.stringify({ time: T + i, ip, status: 200 })}\n`,
  )

  it('has an address: a line with another word there is not read', async () => {
    const { reading, calls } = await readAll([sourceOf('a', ...log)])
    expect([calls.map(({ keys }) => keys[0]), reading.ledger.unread]).toEqual([[ADDRESS], 2])
  })

  it('may have a name where that is asked', async () => {
    const { calls } = await readAll([sourceOf('a', ...log)], { callers: 'names' })
    expect(calls.map(({ keys }) => keys[0])).toEqual([ADDRESS, 'unix:', 'host.example'])
  })
})

describe('lines by their fields', () => {
  it('are named with their counts, and those without an answer are no calls where others have one', async () => {
    const message = `${JSON.stringify({ time: T, ip: ADDRESS, msg: 'looking it up' })}\n`
    const call = `${JSON.stringify({ time: T, ip: ADDRESS, status: 200 })}\n`
    const { reading } = await readAll([sourceOf('a', message, message, call, '{"msg":"started"}\n')])
    expect(Object.fromEntries(reading.ledger.groups)).toEqual({
      ip: { lines: 2, read: 0 },
      'ip + status': { lines: 1, read: 1 },
      'neither caller nor answer': { lines: 1, read: 0 },
    })
    expect(reading.ledger.unread).toBe(0)
  })

  it('have no blank lines or comments among them', async () => {
    const call = line(0, 'r', { req: { remoteAddress: ADDRESS }, res: { statusCode: 200 } })
    const { reading } = await readAll([sourceOf('a', [call, call, call].join('\n# a comment\n'))])
    expect([...reading.ledger.groups.values()]).toEqual([{ lines: 3, read: 3 }])
  })

  it('are all calls where none has an answer', async () => {
    const { reading } = await readAll([sourceOf('a', `${JSON.stringify({ time: T, ip: ADDRESS })}\n`)])
    expect([reading.ledger.read, reading.hasStatus]).toEqual([1, false])
  })
})

describe('fields of an application', () => {
  const ids = Array.from({ length: 10 }, (_, i) => `req-${i}`)
  const calls = ids.map((id, i) => asked(2 * i, id) + answered(2 * i + 1, id, 429)).join('')
  const where = parseWhere('method=GET,path=/a')

  it.each([
    ['once', line(30, 'req-3', { status: 'done', method: 'card', path: 'till' })],
    ['in each call', ids.map((id) => line(30, id, { status: 'done', path: '/x', method: 'CARD' })).join('')],
    ['in most lines', line(30, '', { status: 200, path: '/x', method: 'PUT' }).repeat(100)],
    [
      'in most lines of calls',
      ids.map((id) => line(30, id, { status: 'done', path: '/t', method: 'card' }).repeat(5)).join(''),
    ],
  ])('with the names of parts of a call, %s, hide no part of it', async (_, lines) => {
    const read = await readAll([sourceOf('a', calls + lines)], { selectors: [{ where }] })
    expect(read.calls.filter(({ denied }) => denied)).toHaveLength(10)
  })

  it('beside the caller and without an answer hide no part either', async () => {
    const req = { method: 'GET', url: '/a', remoteAddress: ADDRESS }
    const call =
      line(0, 'r', { req, path: '/x', method: 'CARD' }).repeat(3) +
      line(1, 'r', { req, res: { statusCode: 429 } })
    const read = await readAll([sourceOf('a', call.repeat(5))], { selectors: [{ where }] })
    expect(read.calls.filter(({ denied }) => denied)).toHaveLength(5)
  })
})
