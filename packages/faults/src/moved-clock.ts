import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type RedisServer, startRedis } from '@sluice/harness/redis'

/** A Redis whose time of day can be set. */
export interface MovedRedis {
  readonly server: RedisServer
  /** How far its clock is off the real time, in milliseconds. */
  setOffset(ms: number): void
  stop(): Promise<void>
}

/** Builds the shim and starts a server on it; tells in a few words why where that cannot be done. */
export async function startMovedRedis(): Promise<MovedRedis | string> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-clock-'))
  const [library, offset, program] = ['shim.so', 'offset', 'redis'].map((name) => join(folder, name))
  const remove = () => rmSync(folder, { recursive: true })
  // Both Jest and the fault matrix are started in the root of the repository.
  const source = resolve('packages/faults/src/clock-shim.c')
  const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', library!, source, '-ldl'], {
    encoding: 'utf8',
  })
  if (built.status !== 0) {
    remove()
    return built.error ? 'there is no C compiler (cc)' : `cc failed: ${built.stderr.trim().split('\n')[0]}`
  }
  const setOffset = (ms: number): void => {
    writeFileSync(offset!, BigInt64Array.of(BigInt(Math.round(ms * 1000))), { flag: 'r+' })
  }
  writeFileSync(offset!, BigInt64Array.of(0n))
  const named = process.env['SLUICE_REDIS_SERVER']
  const line = `exec env LD_PRELOAD=${library} CLOCK_OFFSET=${offset} ${named ?? 'redis-server'} "$@"`
  writeFileSync(program!, `#!/bin/sh\n${line}\n`)
  chmodSync(program!, 0o755)
  process.env['SLUICE_REDIS_SERVER'] = program
  try {
    const server = await startRedis()
    return { server, setOffset, stop: async () => (await server.stop(), remove()) }
  } finally {
    if (named === undefined) delete process.env['SLUICE_REDIS_SERVER']
    else process.env['SLUICE_REDIS_SERVER'] = named
  }
}
