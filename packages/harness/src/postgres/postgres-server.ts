import { execFileSync } from 'node:child_process'
import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../redis/free-port.js'
import { logOf, removeFolder, ServerProcess } from '../redis/server-process.js'
import { until } from '../redis/until.js'
import { makeFolder, OWNER, programOf } from './programs.js'

/** A real server of its own on loopback, with the database and the superuser `postgres`. It keeps no process alive. */
export interface PostgresServer {
  readonly host: string
  readonly port: number
  readonly url: string
  /** Ends it and removes its files. */
  stop(): Promise<void>
  /** SIGKILL of the server, whose own processes end then; resolves when they have. */
  kill(): Promise<void>
  /** SIGSTOP of all its processes: connections stay open and nothing answers. */
  pause(): void
  resume(): void
  /** Starts it again on the same port with its data. Kills it if it runs. */
  restart(): Promise<void>
  /** A standby that follows this server, which ends its connections and starts again for it. */
  standby(): Promise<PostgresStandby>
}

export interface PostgresStandby extends PostgresServer {
  /** Makes it a primary. */
  promote(): Promise<void>
}

export interface PostgresOptions {
  /** Settings of the server: `{ fsync: 'on' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

/** Starts the newest `postgres` of the system, or that of SLUICE_POSTGRES_BIN, and waits until it answers. */
export async function startPostgres({ settings = {} }: PostgresOptions = {}): Promise<PostgresServer> {
  const folder = makeFolder()
  try {
    const args = [
      '-D',
      join(folder, 'data'),
      '-U',
      'postgres',
      '-A',
      'trust',
      '-E',
      'UTF8',
      '--locale=C',
      '--no-sync',
    ]
    run('initdb', args, folder)
    appendFileSync(join(folder, 'data', 'pg_hba.conf'), 'host replication all 127.0.0.1/32 trust\n')
    return await launch(folder, settings)
  } catch (error) {
    removeFolder(folder)
    throw error
  }
}

/**
 * Runs a program of Postgres to its end, as the user that servers run as.
 * @throws {Error} if it fails.
 */
function run(program: string, args: readonly string[], folder: string): void {
  execFileSync(programOf(program), args, { cwd: folder, stdio: 'pipe', ...OWNER })
}

/** Starts a server on the data in a folder, on a free port, and waits until it takes connections. */
async function launch(folder: string, settings: Readonly<Record<string, string>>): Promise<PostgresStandby> {
  const port = await freePort()
  const all = { ...BASICS, port: String(port), ...settings }
  const args = [
    '-D',
    join(folder, 'data'),
    ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const start = async (): Promise<ServerProcess> => {
    const started = new ServerProcess(programOf('postgres'), args, folder, OWNER)
    const isUp = async () => !started.running || (await answers(port))
    await until(`a Postgres on port ${port}`, isUp, START_MS)
    if (started.running) return started
    throw new Error(`the Postgres on port ${port} exited at once: ${logOf(folder)}`)
  }
  let current = await start()
  const kill = async () => {
    const children = childrenOf(current)
    await current.end('SIGKILL')
    // Children notice the end of their server one after the other; it cannot start again before the last has gone.
    await until('the processes of a killed Postgres', () => children.every((pid) => !isAlive(pid)), START_MS)
  }
  return {
    host: HOST,
    port,
    url: `postgres://postgres@${HOST}:${port}/postgres`,
    async stop() {
      for (const pid of childrenOf(current)) signal(pid, 'SIGCONT')
      current.signal('SIGCONT')
      await current.end('SIGQUIT')
      removeFolder(folder)
    },
    kill,
    pause() {
      current.signal('SIGSTOP')
      for (const pid of childrenOf(current)) signal(pid, 'SIGSTOP')
    },
    resume() {
      for (const pid of childrenOf(current)) signal(pid, 'SIGCONT')
      current.signal('SIGCONT')
    },
    async restart() {
      if (current.running) await kill()
      current = await start()
    },
    async standby() {
      // A copy of one that has ended in order: not every build of Postgres brings pg_basebackup.
      await current.end('SIGINT')
      const own = makeFolder()
      execFileSync('cp', ['-a', join(folder, 'data'), own], { ...OWNER })
      current = await start()
      writeFileSync(join(own, 'data', 'standby.signal'), '')
      return launch(own, { ...settings, primary_conninfo: `host=${HOST} port=${port} user=postgres` })
    },
    async promote() {
      run('pg_ctl', ['promote', '-w', '-D', join(folder, 'data')], folder)
    },
  }
}

/** The ids of the processes that a server has started, one for each of its connections and tasks. */
function childrenOf({ pid }: ServerProcess): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && parentOf(name) === pid)
    .map(Number)
}

/** The process id of a process's parent, by Linux's /proc; undefined if it has ended. */
function parentOf(pid: string): number | undefined {
  try {
    return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1])
  } catch {
    return undefined // it has ended
  }
}

/** Sends a signal to a process; 0 only asks whether it runs. Returns whether it does. */
function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** Whether a process runs. */
function isAlive(pid: number): boolean {
  return signal(pid, 0)
}

/** Whether the server takes connections: it answers a request for TLS with one byte, also while it starts. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST)
    const end = (isUp: boolean): void => {
      socket.destroy()
      resolve(isUp)
    }
    socket.on('connect', () => socket.write(START_UP))
    // 'R' asks for authentication or says that there is none; 'E' says that the server is starting.
    socket.on('data', (data) => end(data[0] === 'R'.charCodeAt(0)))
    socket.on('error', () => end(false))
    socket.on('close', () => resolve(false))
  })
}

/** The message that begins a connection: its length, protocol 3.0, and the user. */
const START_UP = (() => {
  const words = Buffer.from('user\0postgres\0database\0postgres\0\0')
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + words.length, 0)
  head.writeInt32BE(196_608, 4)
  return Buffer.concat([head, words])
})()

const HOST = '127.0.0.1'
const START_MS = 20_000
/** No socket in the file system, and no waiting for the disk: a killed server loses nothing that the system has. */
const BASICS = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  fsync: 'off',
  shared_buffers: '32MB',
  max_connections: '60',
  logging_collector: 'off',
  autovacuum_naptime: '5s',
  wal_level: 'replica',
  max_wal_senders: '4',
}
