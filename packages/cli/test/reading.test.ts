import * as fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseWhere } from '@sluice/policies'
import { fixture, lineAt, readAll, sourceOf, sums } from './bytes.js'
import { NoLogError } from '@sluice/cli'
import { runsIn } from '@sluice/testing/internal'

/** Mutated logs that are read. */
const RUNS = runsIn('LOG_RUNS', 10_000)
const S = 1_760_104_536

describe('lines', () => {
  it('may be cut anywhere into pieces', async () => {
    const bytes = fixture('combined')
    const whole = (await readAll([sourceOf('a', bytes)])).calls
    for (let at = 0; at < bytes.length; at += 7) {
      const { calls } = await readAll([sourceOf('a', bytes.subarray(0, at), bytes.subarray(at))])
      expect(calls).toEqual(whole)
    }
  })

  it('that cannot be read are counted by reason, with the first of each', async () => {
    const good = lineAt(S)
    const log = [
      good,
      'torn [10/Oct/2025:13:',
      '\n\n',
      `\0\0${good}`,
      'x'.repeat(2 ** 19),
      'x'.repeat(2 ** 19),
      '\n# made by hand\n',
      good,
    ]
    const old = lineAt(S - 3600)
    const many = good.repeat(3000) // so that earlier lines have been passed on
    const { reading } = await readAll([sourceOf('a', ...log, many, old, good.replace('Oct', 'Okt'), 'torn')])
    expect(sums(reading)).toEqual({
      lines: 3010,
      read: 3002,
      skipped: {
        'not in the format': 2,
        'empty line': 1,
        'NUL bytes': 1,
        'longer than 256 KiB': 1,
        'comment line': 1,
        'clock ran back': 1,
        'no time': 1,
      },
    })
    expect(reading.ledger.skipped.get('clock ran back')).toMatchObject({
      source: 'a',
      line: 3008,
      text: old.trim(),
    })
    const firsts = [...reading.ledger.skipped].map(([reason, { line }]) => [line, reason])
    expect(firsts).toEqual([
      [2, 'not in the format'],
      [3, 'empty line'],
      [4, 'NUL bytes'],
      [5, 'longer than 256 KiB'],
      [6, 'comment line'],
      [3008, 'clock ran back'],
      [3009, 'no time'],
    ])
  })

  it('none of which says anything are no log: blank ones, NUL bytes, and lines without an end', async () => {
    for (const log of ['\n\n\n', '\0\0\n', 'x'.repeat(2 ** 20)])
      await expect(readAll([sourceOf('a', log)])).rejects.toThrow(/^a: no field for 'time' was found/)
  })

  it('that resemble syslog cost no more than their length', async () => {
    const hostile = `<1>1 a b c d e ${'[]'.repeat(60)}x\n`
    const { reading } = await readAll([sourceOf('a', lineAt(S), hostile)])
    expect(sums(reading).skipped).toEqual({ 'not in the format': 1 })
  })

  it('that resemble calls cost no more than their length', async () => {
    const hostile = `${'GET '.repeat(60_000)}\n`.repeat(20)
    const { reading } = await readAll([sourceOf('a', lineAt(S), hostile, 'GET / 200\n')])
    expect([sums(reading).skipped, reading.ledger.unread]).toEqual([{ 'not in the format': 21 }, 1])
  })

  it('that resemble those of stern cost no more than their length', async () => {
    const hostile = `a-b ${'a'.repeat(250_000)}\n`.repeat(20)
    const { reading } = await readAll([sourceOf('a', lineAt(S), hostile)])
    expect(sums(reading).skipped).toEqual({ 'not in the format': 20 })
  })

  it('behind a thousand blank ones are read', async () => {
    const { reading } = await readAll([sourceOf('a', '\n'.repeat(1500), '\n'.repeat(500), lineAt(S))])
    expect(sums(reading)).toEqual({ lines: 2001, read: 1, skipped: { 'empty line': 2000 } })
  })

  it('have one cost each and no corrections: a negative cost, as of a refund, is skipped', async () => {
    const lines = [5, 0, -3, 'none', ' '].map((units) =>
      JSON.stringify({ time: S * 1000, ip: '203.0.113.7', units }),
    )
    const { reading, calls } = await readAll([sourceOf('a', lines.join('\n'))], { cost: 'field:units' })
    expect(calls.map(({ cost }) => cost)).toEqual([5, 0])
    expect(sums(reading)).toEqual({ lines: 5, read: 2, skipped: { 'no cost': 3 } })
  })

  it('of a source that fails are read up to there, and the rest is counted as cut off', async () => {
    const { reading } = await readAll([
      sourceOf('a', lineAt(S), lineAt(S).slice(0, 30), new Error('unexpected end')),
    ])
    expect(sums(reading)).toEqual({ lines: 2, read: 1, skipped: { 'cut off': 1 } })
  })

  it('of a source that fails at once are an error with its name, also of a browser, whose message cannot be set', async () => {
    const gone = new DOMException('it is gone', 'NotFoundError')
    const chunks = new ReadableStream({ start: (controller) => controller.error(gone) })
    const error = await readAll([{ name: 'a', chunks }]).catch((thrown: Error) => thrown)
    expect(error).toBe(gone)
    expect(gone.message).toBe('a: it is gone')
  })

  it('outside of where are read, and no calls', async () => {
    const where = parseWhere('status!=200')
    const { reading, calls } = await readAll([sourceOf('a', lineAt(S), lineAt(S, '192.0.2.1', 429))], {
      selectors: [{ where }],
    })
    expect([reading.ledger.read, reading.ledger.outside, calls.length]).toEqual([2, 1, 1])
  })

  it('are sorted where they are a few seconds late, and several logs are merged', async () => {
    const seconds = Array.from({ length: 5000 }, (_, i) => S + i + (i % 3 === 0 ? 4 : 0))
    const [one, other] = [0, 1].map((part) =>
      seconds
        .filter((_, i) => i % 2 === part)
        .map((s) => lineAt(s))
        .join(''),
    )
    const { calls } = await readAll([sourceOf('a', one!), sourceOf('b', other!), sourceOf('empty')])
    expect(calls.map(({ at }) => at / 1e6)).toEqual(seconds.toSorted((a, b) => a - b))
  })
})

const FILES = [
  ...['combined', 'alb', 'envoy', 'caddy.json', 'docker', 'cri', 'syslog', 'journald.json'].map(fixture),
  ...['fastify', 'haproxy', 'cloudfront', 'pm2-logs', 'heroku-router', 'squid'].map((name) =>
    readFileSync(join(__dirname, `samples/${name}.txt`)),
  ),
]

it('mutated logs never crash the reader, and their lines add up', async () => {
  const mutation = fc.record({ at: fc.nat(9000), drop: fc.nat(40), bytes: fc.uint8Array({ maxLength: 6 }) })
  const logs = fc.tuple(
    fc.constantFrom(...FILES),
    fc.array(mutation, { minLength: 1, maxLength: 5 }),
    fc.boolean(),
  )
  const check = async ([bytes, mutations, isCut]: readonly [
    Buffer,
    readonly { at: number; drop: number; bytes: Uint8Array }[],
    boolean,
  ]) => {
    let log = Buffer.concat([bytes, bytes, bytes])
    for (const { at, drop, bytes: put } of mutations) {
      const place = at % log.length
      log = Buffer.concat([log.subarray(0, place), put, log.subarray(place + drop)])
    }
    try {
      const { reading } = await readAll([sourceOf('m', log, ...(isCut ? [new Error('cut')] : []))])
      const { lines, read, skipped } = sums(reading)
      const there = log.toString('latin1').split('\n').length - (log.at(-1) === 10 ? 1 : 0)
      expect(read + Object.values(skipped).reduce((sum, count) => sum + count, 0)).toBe(lines)
      expect(lines).toBe(there + (isCut && log.at(-1) === 10 ? 1 : 0)) // a source that fails between lines is one more
    } catch (error) {
      if (!(error instanceof NoLogError)) throw error
    }
  }
  await fc.assert(fc.asyncProperty(logs, check), { numRuns: RUNS })
}, 120_000)
