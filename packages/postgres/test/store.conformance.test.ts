import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { conformance } from '@sluice/testing/internal'
import { Pool } from 'pg'
import { postgresStore } from '@sluice/postgres'

jest.setTimeout(600_000)

let server: PostgresServer
let pool: Pool
beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url })
  const store = postgresStore(pool)
  await store.ready()
  await store.close()
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

conformance(
  'postgres',
  async (clock) => {
    // Sessions of the kit follow one another, so that an empty table for each keeps them apart.
    await pool.query('delete from sluice')
    return postgresStore(pool, { clock })
  },
  { lawRuns: 10 },
)
