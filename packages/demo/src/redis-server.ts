import { redisStore } from '@sluice/core/redis'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { CannotRun } from './demo.js'

export interface RedisServer {
  readonly url: string
  /** For the display: a URL may hold a password. */
  readonly what: string
  stop(): Promise<void>
}

/** The Redis that REDIS_URL names, or one that runs for as long as the demo. @throws {CannotRun} */
export async function openRedis(): Promise<RedisServer> {
  const { REDIS_URL } = process.env
  const redis = REDIS_URL ? given(REDIS_URL) : await own()
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
    throw new CannotRun('There is no redis-server or valkey-server in PATH. Install one, or set REDIS_URL.')
  const port = await freePort()
  const server = start(program, port)
  return {
    url: `redis://127.0.0.1:${port}`,
    what: `a ${program} on port ${port}`,
    async stop() {
      server.stdin?.end()
      if (server.exitCode === null) await once(server, 'exit')
    },
  }
}

/**
 * A shell ends the server when its own input closes, which it does however this process ends. Ctrl-C does not reach
 * them: the processes of a demo still need their Redis then.
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
  for (;;) {
    const store = redisStore(url, { lazy: true })
    try {
      return await store.ready()
    } catch (error) {
      const { cause, message } = error as Error
      const why = cause instanceof Error ? cause.message : message
      if (Date.now() >= giveUpAt) throw new CannotRun(`Cannot reach ${what}: ${why}`)
    } finally {
      await store.close()
    }
    await sleep(50)
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
