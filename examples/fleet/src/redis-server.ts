import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Redis } from 'ioredis'

export interface RedisServer {
  readonly url: string
  /** For the display: a URL may hold a password. */
  readonly what: string
  stop(): Promise<void>
}

/** Its message is meant for the person at the terminal. */
export class NoRedis extends Error {}

/** The Redis that REDIS_URL names, or one that runs for as long as the example. @throws {NoRedis} */
export async function openRedis(): Promise<RedisServer> {
  const redis = process.env['REDIS_URL'] ? given(process.env['REDIS_URL']) : await own()
  try {
    await reach(redis)
    return redis
  } catch (error) {
    await redis.stop()
    throw error
  }
}

function given(url: string): RedisServer {
  return { url, what: 'the Redis of REDIS_URL', stop: async () => {} }
}

async function own(): Promise<RedisServer> {
  const program = ['redis-server', 'valkey-server'].find(isInPath)
  if (!program)
    throw new NoRedis('There is no redis-server or valkey-server in PATH. Install one, or set REDIS_URL.')
  const port = await freePort()
  const server = start(program, port)
  return {
    url: `redis://127.0.0.1:${port}`,
    what: `a ${program} of its own on port ${port}`,
    async stop() {
      server.stdin?.end()
      if (server.exitCode === null) await once(server, 'exit')
    },
  }
}

/**
 * A shell ends the server when its own input closes, which it does however this process ends. Ctrl-C does not reach
 * them: the processes of the fleet still need their Redis then.
 */
function start(program: string, port: number): ChildProcess {
  const line = `"$0" --bind 127.0.0.1 --port ${port} --save '' & read -r _; kill $!; wait`
  return spawn('sh', ['-c', line, program], {
    cwd: tmpdir(),
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
}

/** A server that was just started needs a moment. */
async function reach({ url, what }: RedisServer): Promise<void> {
  const giveUpAt = Date.now() + PATIENCE_MS
  const redis = new Redis(url, {
    connectTimeout: 1000,
    retryStrategy: () => (Date.now() < giveUpAt ? 50 : null),
    maxRetriesPerRequest: null,
  })
  let why = ''
  redis.on('error', ({ message }) => (why = message))
  try {
    await redis.ping()
  } catch (error) {
    throw new NoRedis(`Cannot reach ${what}: ${why || (error as Error).message}`)
  } finally {
    redis.disconnect()
  }
}

const PATIENCE_MS = 3000

function isInPath(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
