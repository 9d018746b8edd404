import { conformance } from '@sluice/testing'
import { createLimiter, gcra } from '@sluice/core'
import { type Database, sqliteStore } from '../../recipes/sqlite.js'

interface Sqlite {
  readonly DatabaseSync: new (path: string) => Database
}

/** Node has it from 22 on. */
const sqlite = process.getBuiltinModule('node:sqlite' as never) as Sqlite | undefined

if (sqlite) {
  conformance('the recipe for SQLite', (clock) => sqliteStore(new sqlite.DatabaseSync(':memory:'), clock), {
    sequences: 500,
  })
}

describe('the recipe for SQLite', () => {
  ;(sqlite ? it : it.skip)('deletes what has expired, two rows for each that is born', async () => {
    const database = new sqlite!.DatabaseSync(':memory:')
    let now = 1_800_000_000_000_000
    const policies = [gcra({ limit: 5, window: '1s' })]
    const store = sqliteStore(database, () => now)
    const limiter = createLimiter({ name: 'x', policies, store, deadline: '10s' })
    for (let i = 0; i < 10; i++) await limiter.consume(`old ${i}`)
    now += 60_000_000
    for (let i = 0; i < 10; i++) await limiter.consume(`new ${i}`)
    expect(database.prepare('select count(*) as rows from limits').get()).toMatchObject({ rows: 10 })
  })
})
