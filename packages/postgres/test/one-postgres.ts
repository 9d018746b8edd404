import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { Pool } from 'pg'

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
  const open = (url = server.url, max = 4) => {
    const opened = new Pool({ connectionString: url, max })
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
