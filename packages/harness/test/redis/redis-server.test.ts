import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { onSources } from '@sluice/harness/processes'
import {
  command,
  commandBytes,
  info,
  monitor,
  pipeline,
  type RedisServer,
  startRedis,
  until,
} from '@sluice/harness/redis'
import { program } from '../../src/redis/server-process.js'

jest.setTimeout(60_000)

const OWNER = 'packages/harness/test/redis/owner.ts'

describe('a server', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis({ args: ['--maxmemory', '50mb'] })
  })
  afterAll(() => server.stop())

  it('runs with the arguments given and keeps nothing on disk', async () => {
    expect(await command(server, 'PING')).toBe('PONG')
    expect(await command(server, 'CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', String(50 * 2 ** 20)])
    expect(await command(server, 'CONFIG', 'GET', 'save')).toEqual(['save', ''])
  })

  it('answers bytes as bytes, errors as errors, and many commands on one connection', async () => {
    const bytes = Buffer.from([0, 255, 13, 10])
    expect(
      await pipeline(server, [
        ['SET', 'k', bytes],
        ['INCR', 'k'],
        ['GET', 'none'],
      ]),
    ).toEqual([
      'OK',
      expect.objectContaining({ message: expect.stringMatching(/^ERR value is not an integer/) }),
      null,
    ])
    expect(await commandBytes(server, 'GET', 'k')).toEqual(bytes)
    await expect(command(server, 'NONE')).rejects.toThrow(/^ERR unknown command/)
    expect(await info(server, 'commandstats')).toHaveProperty(
      'cmdstat_set',
      expect.stringMatching(/^calls=1,/),
    )
  })

  it('is watched by a monitor, scripts included', async () => {
    const watched = await monitor(server)
    await command(server, 'EVAL', "return redis.call('GET', KEYS[1])", 1, 'k')
    const lines = await watched.stop()
    expect(lines).toEqual([expect.stringMatching(/"EVAL"/), expect.stringMatching(/ lua\] "GET" "k"/)])
  })

  it('stands still while it is paused', async () => {
    server.pause()
    let answered = false
    const answer = command(server, 'PING').then(() => (answered = true))
    await expect(until('an answer', () => answered, 150)).rejects.toThrow('waited')
    server.resume()
    await answer
  })

  it('comes back empty on the same port after it was killed', async () => {
    const { pid, port } = server
    await server.kill()
    await expect(command(server, 'PING')).rejects.toThrow('ECONNREFUSED')
    await server.restart()
    expect(server.port).toBe(port)
    expect(server.pid).not.toBe(pid)
    expect(await command<number>(server, 'DBSIZE')).toBe(0)
  })

  it('stops although it is paused, and leaves no files', async () => {
    const other = await startRedis()
    const [, folder] = await command<string[]>(other, 'CONFIG', 'GET', 'dir')
    other.pause()
    await other.stop()
    expect(isRunning(other.pid)).toBe(false)
    expect(existsSync(folder!)).toBe(false)
  })

  it('says what was wrong when it cannot start', async () => {
    await expect(startRedis({ args: ['--maxmemory', 'much'] })).rejects.toThrow(/exited at once/)
  })
})

describe('a server whose test process is killed', () => {
  it('is killed too', async () => {
    program() // what the other process needs; where it is missing this test is skipped
    const owner = spawn(process.execPath, [...onSources(), OWNER], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(owner.stdout, 'data')) as [Buffer]
    const server = { host: '127.0.0.1', port: Number(line.toString()) }
    const [, folder] = await command<string[]>(server, 'CONFIG', 'GET', 'dir')
    owner.kill('SIGKILL')
    await until('the files to be gone', () => !existsSync(folder!))
    await until('the server to be gone', () => command(server, 'PING').then(() => false, isRefusal))
  })
})

function isRefusal(error: Error): boolean {
  return error.message.includes('ECONNREFUSED')
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
