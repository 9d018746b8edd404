import { EventEmitter } from 'node:events'
import { createClient } from 'redis'
import { createLimiter, createSemaphore, gcra } from '../../../src/index.js'
import { type RedisOptions, redisStore } from '../../../src/stores/redis/index.js'

/** The methods by which node-redis 4 is known, and a few of the properties that its clients hold. */
class NodeRedis4 extends EventEmitter {
  readonly options = { url: 'redis://user:secret@h' }
  readonly evalSha = EVALSHA
  readonly EVALSHA = EVALSHA
}
function EVALSHA() {}

/** A client over HTTP, which knows scripts and no events. */
class RestClient {
  evalsha() {}
  eval() {}
}

const TAKES =
  'redisStore takes a client of ioredis or iovalkey (Redis, Cluster) or of node-redis 5 or later (client, pool, ' +
  'cluster, sentinel), a redis:// URL, or options that say where Redis is (url, host, port, path, sentinels or cluster), got '

const client = new NodeRedis4()

const noClients: readonly [name: string, given: unknown, message: string][] = [
  ['undefined', undefined, `${TAKES}undefined`],
  ['null', null, `${TAKES}null`],
  ['5', 5, `${TAKES}5`],
  ['true', true, `${TAKES}true`],
  ['a function', createClient, `${TAKES}a function: hand in the client that it makes`],
  ['a promise', Promise.resolve(client), `${TAKES}a promise: await it`],
  ['no options', {}, `${TAKES}an object`],
  ['options of undefined', { url: undefined, host: undefined }, `${TAKES}an object`],
  ['an array', ['redis://h'], `${TAKES}an object of the class Array`],
  ['a Map', new Map([['host', 'h']]), `${TAKES}an object of the class Map`],
  ['an emitter', new EventEmitter(), `${TAKES}an object of the class EventEmitter`],
  ['a URL', new URL('redis://h'), `${TAKES}an object of the class URL`],
  ['a client over HTTP', new RestClient(), `${TAKES}an object of the class RestClient`],
  [
    'a node-redis 4 client',
    client,
    `${TAKES}a client of node-redis 4 or older, or its legacy(): npm install redis@latest`,
  ],
  [
    'a legacy() client',
    createClient().legacy(),
    `${TAKES}a client of node-redis 4 or older, or its legacy()`,
  ],
  ['{ client }', { client }, "there is no option 'client' of redisStore"],
  ['{ socket }', { socket: { host: 'h' } }, "there is no option 'socket' of redisStore"],
]

const wrongOptions: readonly [given: object, message: string][] = [
  [
    { host: 'h', foo: 1 },
    "there is no option 'foo' of redisStore: for other settings hand in a client: redisStore(",
  ],
  [{ host: 'h', lazy: true }, "there is no option 'lazy' of redisStore"],
  [{ host: 'h', maxRetriesPerRequest: 3 }, "there is no option 'maxRetriesPerRequest' of redisStore"],
  [{ host: 'h', toString: 1 }, "there is no option 'toString' of redisStore"],
  [{ host: 5 }, 'host must be a text that is not empty, got 5'],
  [{ host: 'h', port: NaN }, 'port must be a whole number from 1 to 65535, got NaN'],
  [{ host: 'h', port: '6379' }, 'port must be a whole number from 1 to 65535, got "6379"'],
  [{ host: 'h', password: 5 }, 'password must be a text, got a number'],
  [{ host: 'h', db: -1 }, 'db must be a whole number from 0 to 2147483647, got -1'],
  [{ host: 'h', tls: true }, 'tls must be an object, {} for TLS with its defaults, got true'],
  [{ host: 'h', connectTimeout: 'soon' }, 'connectTimeout must be a whole number of milliseconds or'],
  [{ host: 'h', keepAlive: -1 }, 'keepAlive must be a whole number of milliseconds or'],
  [{ host: 'h', family: 5 }, 'family must be 0, 4 or 6, got 5'],
  [{ host: 'h', name: 'main' }, 'sentinels and name belong together'],
  [{ cluster: [{ port: 1 }] }, 'cluster must be a list of { host, port }, at least one, got an array of 1'],
  [{ url: 'redis://h', path: '/run/redis' }, 'url and path exclude each other: leave one of them out'],
  [{ host: 'h', cluster: [{ host: 'h', port: 1 }] }, 'cluster and host exclude each other'],
  [{ url: 'http://user:secret@h' }, 'a Redis URL must begin with redis:// or rediss://, got http:'],
]

const refusal = (message: string) =>
  expect.objectContaining({ name: 'PolicyError', message: expect.stringContaining(message) })

describe('what is no client', () => {
  it.each(noClients)('is refused by redisStore: %s', (_, given, message) => {
    expect(() => redisStore(given as string)).toThrow(refusal(message))
    expect(() => redisStore(given as string)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
  })

  it.each(noClients.filter(([, given]) => given !== undefined))(
    'is refused as the store of a limiter and of a semaphore: %s',
    (_, store) => {
      const policies = [gcra({ limit: 1, window: '1s' })]
      const error = expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringMatching(/^store must be/),
      })
      expect(() => createLimiter({ name: 'a', policies, store: store as never })).toThrow(error)
      expect(() => createSemaphore({ name: 'a', limit: 1, store: store as never })).toThrow(error)
    },
  )

  it('does not compile', () => {
    expect(() => [
      // @ts-expect-error a number
      redisStore(5),
      // @ts-expect-error an option that there is not
      redisStore({ foo: 1 }),
      // @ts-expect-error a promise
      redisStore(createClient().connect()),
      // @ts-expect-error perhaps nothing
      redisStore(undefined as string | undefined),
      // @ts-expect-error a client of an older version
      redisStore(client),
    ]).toThrow('redisStore takes')
  })
})

describe('options of a connection', () => {
  it.each(wrongOptions)('are refused: %j', (given, message) => {
    expect(() => redisStore(given as RedisOptions)).toThrow(refusal(message))
  })
})
