import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/*
 * Scripts under plain Lua 5.1, with as much of Redis as they use (redis.lua). Requests and replies go through named
 * pipes, which block: an answer is there when the call returns, so the tables of the algorithms need no change.
 */
export interface LuaRedis {
  /** What a script answers; `now`, in microseconds, is what its TIME says. Throws what it throws. */
  run(script: string, now: number, key: Buffer, argument: Buffer): Buffer
  /** The same for several keys, each with its argument; those beyond the last one share it. One reply, or a list of them. */
  runAll(script: string, now: number, calls: LuaCalls): Buffer | Buffer[]
  /** Makes a command fail from now on; without an error it does its work again. */
  refuse(command: string, error?: string): void
  /** The messages that scripts have published since it was asked last. */
  messages(): (readonly [channel: string, text: string])[]
  /** Keeps a copy of all keys, in place of the last one of this name. */
  snapshot(name: string): void
  /** Puts all keys back as they were in a snapshot; without a name there are none. */
  restore(name?: string): void
  close(): void
}

export type LuaCalls = readonly (readonly [key: Buffer, argument?: Buffer])[]

/** Starts it. `program` is the path of redis.lua. */
export function startLuaRedis(program = join(__dirname, 'redis.lua')): LuaRedis {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lua-'))
  const [requests, replies] = [join(folder, 'requests'), join(folder, 'replies')]
  execFileSync('mkfifo', [requests, replies])
  const line = 'exec lua5.1 "$0" <"$1" >"$2"'
  spawn('sh', ['-c', line, program, requests, replies], { stdio: 'inherit' }).unref()
  const [to, from] = [openSync(requests, 'w'), openSync(replies, 'r')]
  rmSync(folder, { recursive: true })
  const numbers = new Map<string, string>()
  const chunk = Buffer.alloc(65_536)
  let hasMessages = false
  const ask = (...words: readonly string[]): string => {
    writeSync(to, `${words.join(' ')}\n`)
    const reply = readLine(from, chunk)
    hasMessages ||= reply.startsWith('*')
    if (!reply.startsWith('-')) return reply.slice(1)
    throw new Error(reply.slice(1))
  }
  const runAll: LuaRedis['runAll'] = (script, now, calls) => {
    let number = numbers.get(script)
    if (!number) numbers.set(script, (number = ask('script', hex(Buffer.from(script)))))
    const words = calls.flatMap(([key, argument]) => [hex(key), argument ? hex(argument) || '.' : '-'])
    const [first, ...others] = ask('call', number, `${now}`, ...words).split(' ')
    if (first !== 'list') return Buffer.from(first!, 'hex')
    return others.map((reply) => Buffer.from(reply, 'hex'))
  }
  return {
    run: (script, now, key, argument) => runAll(script, now, [[key, argument]]) as Buffer,
    runAll,
    refuse(command, error) {
      ask('refuse', command, ...(error === undefined ? [] : [hex(Buffer.from(error))]))
    },
    messages() {
      if (!hasMessages) return []
      hasMessages = false
      const words = ask('messages')
        .split(' ')
        .map((word) => Buffer.from(word, 'hex').toString())
      return Array.from({ length: Math.floor(words.length / 2) }, (_, i) => [
        words[2 * i]!,
        words[2 * i + 1]!,
      ])
    },
    snapshot: (name) => void ask('snapshot', name),
    restore: (name = '') => void ask('restore', name),
    close() {
      closeSync(to)
      closeSync(from)
    },
  }
}

/** Installs Lua where it is missing and can be. Returns undefined, or what to do, in a line. */
export function luaIsMissing(): string | undefined {
  if (isThere()) return undefined
  spawnSync(process.execPath, [join(__dirname, '../../../../scripts/ensure.js'), 'lua'])
  return isThere() ? undefined : 'skipped: there is no lua5.1 in PATH (Debian: apt-get install lua5.1)'
}

const isThere = (): boolean => spawnSync('lua5.1', ['-v']).status === 0

const hex = (bytes: Buffer): string => bytes.toString('hex')

function readLine(from: number, chunk: Buffer): string {
  let line = ''
  while (!line.endsWith('\n')) {
    const size = readSync(from, chunk)
    if (size === 0) throw new Error('lua5.1 has ended')
    line += chunk.toString('latin1', 0, size)
  }
  return line.slice(0, -1) // an empty reply may be the last
}
