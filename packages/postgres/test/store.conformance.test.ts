import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { conformance } from '@sluice/testing/internal'
import { Pool } from 'pg'
import { postgresSchema, postgresStore } from '@sluice/postgres'

jest.setTimeout(600_000)

/** A sweep that is under way when its session ends goes by the clock of that session, so the next ones have other tables. */
const TABLES = Array.from({ length: 8 }, (_, i) => `kit_${i}`)
let sessions = 0

let server: PostgresServer
let pool: Pool
beforeAll(async () => {
  server = await startPostgres()
  pool = new Pool({ connectionString: server.url })
  for (const table of TABLES) await pool.query(postgresSchema({ table }))
})
afterAll(async () => {
  await pool.end()
  await server.stop()
})

conformance(
  'postgres',
  async (clock) => {
    // Sessions of the kit follow one another, so that an empty table for each keeps them apart.
    const table = TABLES[sessions++ % TABLES.length]!
    await pool.query(`delete from ${table}`)
    return postgresStore(pool, { clock, table })
  },
  { lawRuns: 10 },
)
