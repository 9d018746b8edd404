import { Command as IoredisCommand, Redis } from 'ioredis'
import { Command as IovalkeyCommand } from 'iovalkey'
import { command, type RedisServer, startRedis } from '@sluice/harness/redis'
import { connectionOver } from '../../../src/stores/redis/clients/detect.js'
import { inOneBuffer } from '../../../src/stores/redis/clients/ioredis.js'

jest.setTimeout(30_000)

const EVERY_BYTE = Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i))

describe.each(Object.entries({ ioredis: IoredisCommand, iovalkey: IovalkeyCommand }))('%s', (_, Command) => {
  it.each<[string, (string | Buffer)[]]>([
    ['texts and bytes in any order', ['sha', EVERY_BYTE, 'user:1', 'user:\u00e9\u{1f600}', EVERY_BYTE, '2']],
    ['no bytes', ['sha', '1', 'user:1']],
    ['empty ones', ['', Buffer.alloc(0), '', Buffer.alloc(0)]],
    ['nothing', []],
  ])('writes a command with %s as the client itself does', (_what, args) => {
    const own = new Command('evalsha', args).toWritable({})
    const inOne = inOneBuffer(new Command('evalsha', args)) as { toWritable(): Buffer }
    expect(inOne.toWritable()).toEqual(typeof own === 'string' ? Buffer.from(own) : own)
  })
})

it('leaves a command alone that has no writer of this name', () => {
  expect(inOneBuffer({ name: 'evalsha' })).toEqual({ name: 'evalsha' })
})

describe('a client that was handed in', () => {
  const SCRIPT = "return redis.call('SET', KEYS[1], ARGV[1]) and KEYS[1]"
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('puts its prefix before every key', async () => {
    const redis = new Redis({ host: server.host, port: server.port, keyPrefix: 'app:' })
    const reply = await connectionOver(redis)!.eval(SCRIPT, ['user:1'], [Buffer.from('1')])
    expect(String(reply)).toBe('app:user:1')
    expect(await command(server, 'GET', 'app:user:1')).toBe('1')
    redis.disconnect()
  })

  it('is called as itself where a method of it was replaced', async () => {
    const redis = new Redis({ host: server.host, port: server.port })
    const evalBuffer = Reflect.get(redis, 'evalBuffer') as (...args: unknown[]) => unknown
    const calledOn = new Set<unknown>()
    Object.assign(redis, {
      evalBuffer(this: unknown, ...args: unknown[]) {
        calledOn.add(this)
        return evalBuffer.apply(redis, args)
      },
    })
    await connectionOver(redis)!.eval(SCRIPT, ['user:1'], [Buffer.from('1')])
    expect(calledOn.has(redis)).toBe(true)
    redis.disconnect()
  })
})
