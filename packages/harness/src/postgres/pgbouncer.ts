import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort } from '../redis/free-port.js'
import { removeFolder, ServerProcess } from '../redis/server-process.js'
import { until } from '../redis/until.js'
import type { PostgresServer } from './postgres-server.js'
import { makeFolder, OWNER, programOf } from './programs.js'

/** A PgBouncer before a server, in transaction mode unless its settings say otherwise. */
export interface PgBouncer {
  readonly url: string
  stop(): Promise<void>
}

export interface PgBouncerOptions {
  /** Settings of its section `[pgbouncer]`: `{ pool_mode: 'session' }`. */
  readonly settings?: Readonly<Record<string, string>>
}

export async function startPgBouncer(
  server: PostgresServer,
  { settings = {} }: PgBouncerOptions = {},
): Promise<PgBouncer> {
  const folder = makeFolder()
  const port = await freePort()
  const ini = join(folder, 'pgbouncer.ini')
  writeFileSync(
    ini,
    `[databases]
postgres = host=${server.host} port=${server.port} user=postgres dbname=postgres
[pgbouncer]
listen_addr = ${server.host}
listen_port = ${port}
unix_socket_dir =
auth_type = any
${Object.entries({ ...BASICS, ...settings })
  .map(([name, value]) => `${name} = ${value}`)
  .join('\n')}
`,
    { mode: 0o644 },
  )
  const started = new ServerProcess(programOf('pgbouncer'), [ini], folder, OWNER)
  await until(`a PgBouncer on port ${port}`, () => !started.running || isOpen(server.host, port), 10_000)
  if (!started.running) {
    removeFolder(folder)
    throw new Error(`the PgBouncer on port ${port} exited at once`)
  }
  return {
    url: `postgres://postgres@${server.host}:${port}/postgres`,
    async stop() {
      await started.end('SIGKILL')
      removeFolder(folder)
    },
  }
}

const BASICS = { pool_mode: 'transaction', default_pool_size: '4', max_client_conn: '200' }

/** Whether something takes connections on a port. */
function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host)
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
