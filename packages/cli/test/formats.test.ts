import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseWhere } from '@sluice/policies'
import { fixture, readAll, sourceOf, sums } from './bytes.js'

/** 13:55:36 on 10 October 2025. */
const T = 1_760_104_536_000_000
const [A, B] = ['203.0.113.7', '198.51.100.4']
const NETWORK = '2001:db8:1:2::/64'

type Row = readonly [
  format: string,
  resolution: number,
  ...calls: (readonly [at: number, key: string, denied?: 429])[],
]

/** Each fixture: its format, the unit of its times, and for each call when it began, who made it, and whether it was denied. */
const LOGS: Readonly<Record<string, Row>> = {
  common: ['common', 1e6, [T, A], [T + 1e6, A, 429], [T + 2e6, NETWORK]],
  combined: ['common', 1e6, [T, A], [T, B, 429], [T + 1e6, A]],
  'virtual-host': ['common', 1e6, [T, A], [T + 1e6, NETWORK, 429]],
  'nginx-main': ['common', 1e6, [T - 250_000, '10.0.0.2'], [T, '10.0.0.2', 429]],
  'ingress-nginx': ['common', 1e6, [T - 250_000, A], [T + 1e6, B, 429]],
  traefik: ['common', 1e6, [T, A], [T + 1e6, B, 429]],
  alb: ['alb', 1, [T + 15_641, A], [T + 1_186_641, B, 429]],
  envoy: ['envoy', 1e3, [T + 310_000, A], [T + 1_310_000, B, 429]],
  istio: ['envoy', 1e3, [T + 310_000, A], [T + 1_310_000, B, 429]],
  'nginx.json': ['json', 1e6, [T - 250_000, A], [T + 1e6, B, 429]],
  'envoy.json': ['json', 1e3, [T + 310_000, A], [T + 1_310_000, B, 429]],
  'caddy.json': ['json', 1, [T + 25, A], [T + 1e6, NETWORK, 429]],
  'traefik.json': ['json', 1, [T + 310_025, A], [T + 1_310_025, B, 429]],
  'pino.json': ['json', 1e3, [T + 310_000, A], [T + 999_000, B, 429]],
  docker: ['common in docker', 1e6, [T, A], [T, B, 429]],
  'docker-split': ['common in docker', 1e6, [T, A], [T, B, 429]],
  cri: ['common in cri', 1e6, [T, A], [T, B, 429]],
  syslog: ['common in syslog', 1e6, [T, A], [T, B, 429]],
  'syslog-5424': ['common in syslog', 1e6, [T, A], [T, B, 429]],
  journald: ['common in syslog', 1e6, [T, A], [T, B, 429]],
  'journald.json': ['common in a field of JSON', 1e6, [T, A], [T, B, 429]],
  colours: ['common', 1e6, [T, A], [T, B, 429]],
}

describe('a log', () => {
  it.each(Object.entries(LOGS))('%s is read with its times, callers and denials', async (name, row) => {
    const [format, resolution, ...expected] = row
    const { reading, calls } = await readAll([sourceOf(name, fixture(name))])
    expect(reading.formats.get(name)).toBe(format)
    expect(reading.resolution).toBe(resolution)
    const found = calls.map(({ at, duration, keys, denied }) => [
      at - duration,
      keys[0],
      ...(denied ? [429] : []),
    ])
    expect(found).toEqual(expected)
  })

  it('is here for every fixture', () => {
    const names = readdirSync(join(__dirname, 'logs')).map((file) => file.replace(/\.txt$/, ''))
    expect(names.sort()).toEqual(Object.keys(LOGS).sort())
  })

  it.each(['\u2028', '\u2029', '\r'])('is read where a line holds %j, which ends no line', async (odd) => {
    const lines = fixture('combined')
      .toString()
      .replaceAll('Gecko', `\\${odd}Gecko`)
      .split(/(?<=\n)/)
    for (const front of [
      '',
      '2025-10-10T13:55:40Z stdout F ',
      '<190>Oct 10 13:55:40 web nginx: ',
      'web-1  | ',
    ]) {
      const { reading } = await readAll([sourceOf(front, lines.map((line) => front + line).join(''))])
      expect([front, sums(reading)]).toEqual([front, { lines: 3, read: 3, skipped: {} }])
    }
    const torn = `${lines.join('')}GET /a${odd} 404\n`
    expect((await readAll([sourceOf('torn', torn)])).reading.ledger.unread).toBe(1)
  })

  it('of several streams is joined by stream, and the lines that show its format are not joined twice', async () => {
    const [whole, part, rest] = fixture('cri').toString().split('\n') as [string, string, string]
    const error = '2025-10-10T13:55:40.669794204Z stderr F an error between'
    const cri = [part, error, rest, whole, ...Array<string>(995).fill(whole), part, rest, ''].join('\n')
    const { reading } = await readAll([sourceOf('cri', cri)])
    expect(sums(reading)).toEqual({
      lines: 1001,
      read: 998,
      skipped: { 'part of a line': 2, 'not in the format': 1 },
    })
    const [first, ...others] = fixture('docker-split').toString().trim().split('\n') as [string, ...string[]]
    const docker = [others[0], first.replace('stdout', 'stderr'), others[1]].join('\n')
    expect(sums((await readAll([sourceOf('docker', docker)])).reading).read).toBe(2)
  })

  it('whose lines begin with a time that kubectl or docker put there has callers that are no times', async () => {
    const log = `2025-10-10T13:55:36.123456789Z ${fixture('common').toString().split('\n')[0]}`
    const { reading, calls } = await readAll([sourceOf('a', log)])
    expect(reading.formats.get('a')).toBe('common in timestamps')
    expect(calls.map(({ keys }) => keys[0])).toEqual([A])
  })

  it('counts the parts of a line that was split', async () => {
    const { reading } = await readAll([sourceOf('cri', fixture('cri'))])
    expect(sums(reading)).toEqual({ lines: 3, read: 2, skipped: { 'part of a line': 1 } })
  })
})

describe('the method', () => {
  it('is none where a log has a URL alone in place of a request line', async () => {
    const log = fixture('common')
      .toString()
      .replace(/"[A-Z]+ \S+ HTTP[^"]*"/, '"/alone"')
    const callsOf = async (where: string) =>
      (await readAll([sourceOf('a', log)], { selectors: [{ where: parseWhere(where) }] })).calls.length
    expect([await callsOf('path=/alone'), await callsOf('method=/alone')]).toEqual([1, 0])
  })
})

describe('the caller', () => {
  const keysOf = async (name: string, options: Parameters<typeof readAll>[1]) =>
    (await readAll([sourceOf(name, fixture(name))], options)).calls.map(({ keys }) => keys[0])

  it('behind proxies is the address that the outermost trusted one saw', async () => {
    expect(await keysOf('nginx-main', { trustProxy: 1 })).toEqual([A, B])
    expect(await keysOf('nginx-main', { trustProxy: 2 })).toEqual(['192.0.2.9', B])
    expect(await keysOf('envoy', { trustProxy: 1 })).toEqual(['192.0.2.9', B])
  })

  it('is the address of the connection where proxies forwarded none, as adapters have it', async () => {
    const log = fixture('nginx-main').toString().replace('192.0.2.9, 203.0.113.7', 'unknown')
    const { calls } = await readAll([sourceOf('a', log)], { trustProxy: 1 })
    expect(calls.map(({ keys }) => keys[0])).toEqual(['10.0.0.2', B])
    const istio = fixture('istio').toString().replace('"203.0.113.7"', '"-"')
    expect((await readAll([sourceOf('b', istio)])).calls.map(({ keys }) => keys[0])).toEqual([
      '10.44.1.23',
      B,
    ])
  })

  it('has one name: a condition on the address is about that name', async () => {
    const log = fixture('nginx-main').toString().replaceAll('10.0.0.2 ', '::ffff:10.0.0.2 ')
    const countOf = async (where: string, trustProxy: number) => {
      const selectors = [{ where: parseWhere(where) }]
      return (await readAll([sourceOf('a', log)], { selectors, trustProxy })).calls.length
    }
    expect([await countOf('ip=10.0.0.2', 0), await countOf(`ip=${B}`, 1)]).toEqual([2, 1])
  })

  it('is found behind proxies in each form in which logs have X-Forwarded-For', async () => {
    const ofCaddy = (...lines: string[]) => {
      const [first = ''] = fixture('caddy.json').toString().split('\n')
      return first.replace('"headers":{', `"headers":{"X-Forwarded-For":${JSON.stringify(lines)},`)
    }
    const ofIis = (value: string) =>
      `#Fields: date time c-ip cs(X-Forwarded-For) sc-status\n2025-10-10 13:55:36 10.0.0.2 ${value} 200\n`
    const logs = [
      ofCaddy('6.6.6.6', A),
      ofCaddy(`6.6.6.6, ${A}`),
      ofIis(`6.6.6.6,+${A}`),
      ofIis(`6.6.6.6,%20${A}`),
    ]
    for (const log of logs) {
      const { calls } = await readAll([sourceOf('a', log)], { trustProxy: 1 })
      expect(calls.map(({ keys }) => keys[0])).toEqual([A])
    }
  })

  it('is a header or a field where that is asked', async () => {
    expect(await keysOf('nginx.json', { selectors: [{ by: 'header:user-agent' }] })).toEqual([
      'curl/8.5.0',
      'curl/8.5.0',
    ])
    expect(await keysOf('caddy.json', { selectors: [{ by: 'header:user-agent' }] })).toEqual([
      'curl/7.82.0',
      'curl/7.82.0',
    ])
    expect(await keysOf('pino.json', { selectors: [{ by: 'field:req.id' }] })).toEqual(['1', '2'])
    expect(await keysOf('combined', { selectors: [{ by: 'header:user-agent' }] })).toHaveLength(2)
  })
})

describe('the place of a field', () => {
  const line = '{"when":1760104536,"who":{"at":"203.0.113.7"},"units":"3","s":429}\n'

  it('that is not known is one error, which names the flag', async () => {
    const read = (fields: Record<string, string>) => readAll([sourceOf('app.log', line)], { fields })
    await expect(read({})).rejects.toThrow(
      /app\.log: no field for 'time', 'ip' .*--field time=PATH --field ip=PATH\. .*\{"when"/,
    )
    await expect(read({ time: 'when' })).rejects.toThrow(/no field for 'ip' .*--field ip=PATH/)
  })

  it('that is asked for by a flag of its own is named by that flag', async () => {
    const read = (options: Parameters<typeof readAll>[1]) =>
      readAll([sourceOf('app.log', line)], { fields: { time: 'when', ip: 'who.at' }, ...options })
    await expect(read({ selectors: [{ by: 'header:team' }] })).rejects.toThrow(/name it with --by\. /)
    await expect(read({ cost: 'field:tokens' })).rejects.toThrow(/name it with --cost\. /)
  })

  it('can be named', async () => {
    const options = { fields: { time: 'when', ip: 'who.at', status: 's' }, cost: 'field:units' }
    const { calls } = await readAll([sourceOf('app.log', line)], options)
    expect(calls).toMatchObject([{ at: T, duration: 0, keys: [A], cost: 3, denied: true }])
  })

  it.each([
    ['took_ms', 250],
    ['tookMs', 250],
    ['took.us', 250_000],
    ['tookNs', 250_000_000],
    ['took', 0.25],
    ['bonus', 0.25],
  ])('of durations may end with their unit, as %s', async (name, value) => {
    const [field, inner] = name.split('.')
    const duration = inner === undefined ? value : { [inner]: value }
    const entry = JSON.stringify({ time: T / 1e6, ip: A, [field!]: duration })
    const { calls } = await readAll([sourceOf('app.log', `${entry}\n`)], { fields: { duration: name } })
    expect(calls.map((call) => call.duration)).toEqual([250_000])
  })

  it('does not make a log of what is none', async () => {
    await expect(readAll([sourceOf('x', 'hello\nworld\n')])).rejects.toThrow(
      /'time' .*no format reads it.*hello/,
    )
  })
})

describe('a line', () => {
  const TIMED = '[10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 5'

  it.each(['a[b', '[', '[x]', 'a [b] c', '[10/Oct/2025:13:55:35 +0000]'])(
    'whose user is named %s has its caller, behind a virtual host too',
    async (user) => {
      const lines = [`${A} - ${user} ${TIMED}`, `shop.example ${A} - ${user} ${TIMED}`].join('\n')
      for (const callers of ['addresses', 'names'] as const) {
        const { calls } = await readAll([sourceOf('a', lines)], { callers })
        expect(calls.map(({ at, keys }) => [at, keys[0]])).toEqual([
          [T, A],
          [T, A],
        ])
      }
    },
  )

  it('whose user is named by many brackets costs no more than its length', async () => {
    const hostile = `${A} - ${'[a '.repeat(80_000)}\n`.repeat(10)
    const { reading } = await readAll([sourceOf('a', `${A} - - ${TIMED}\n`, hostile)])
    expect(sums(reading).skipped).toEqual({ 'not in the format': 10 })
  })

  it.each([
    ['uri', '/my file', '/my file'],
    ['uri', '/a b?c d', '/a b'],
    ['request', 'GET /a?b HTTP/1.1', '/a'],
    ['uri', 'POST /a HTTP/1.1', '/a'],
  ])('of JSON whose %s is %s has the path %s', async (field, text, path) => {
    const log = JSON.stringify({ time: T / 1e6, ip: A, [field]: text })
    const selectors = [{ where: parseWhere(`path=${path}`) }]
    expect((await readAll([sourceOf('a', log)], { selectors })).calls).toHaveLength(1)
  })

  it('that journald has as a list of bytes is read', async () => {
    const entry = (text: string) => `${JSON.stringify({ MESSAGE: [...Buffer.from(text, 'latin1')] })}\n`
    const log = entry(`${A} - \u001b[32mme\u001b[0m ${TIMED}`) + entry(`${B} - \xfc ${TIMED}`)
    const { reading, calls } = await readAll([sourceOf('a', log)])
    expect(reading.formats.get('a')).toBe('common in a field of JSON')
    expect(calls.map(({ keys }) => keys[0])).toEqual([A, B])
  })
})
