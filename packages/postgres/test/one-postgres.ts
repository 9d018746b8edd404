import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { type ClientBase, Pool } from 'pg'

/** A server for the tests of a file, a pool to look at it with, and pools that end with it. */
export function onePostgres() {
  let server: PostgresServer
  let pool: Pool
  const pools: Pool[] = []
  beforeAll(async () => {
    server = await startPostgres()
    pool = open()
  }, 60_000)
  afterAll(async () => {
    await Promise.all(pools.filter(({ ended }) => !ended).map((each) => each.end()))
    await server?.stop()
  })
  /** Opens a pool of at most `max` sessions, each of which `setUp` prepares. */
  const open = (url = server.url, max = 4, setUp?: (client: ClientBase) => Promise<unknown>) => {
    const onConnect = setUp as (client: ClientBase) => void // the pool waits for its promise, which @types/pg does not say
    const opened = new Pool({ connectionString: url, max, ...(setUp && { onConnect }) })
    opened.on('error', () => {})
    pools.push(opened)
    return opened
  }
  return {
    get server() {
      return server
    },
    get pool() {
      return pool
    },
    open,
  }
}
