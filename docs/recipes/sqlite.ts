import { createHash } from 'node:crypto'
import { guard, keyspaceOver, type Store, StoreError, type UpdateMany } from '@sluice/core/store'

/*
 * Limits in a file of SQLite, which the processes of one machine share and which outlives them. An update is one transaction that holds
 * the file's write lock, so it is exact. It blocks the process while it runs, some 50 microseconds, and while another one writes.
 */

/** What DatabaseSync of `node:sqlite` (Node 22 and newer) and `better-sqlite3` have in common. */
export interface Database {
  exec(sql: string): unknown
  prepare(sql: string): { get(...values: unknown[]): unknown; run(...values: unknown[]): unknown }
}

/** `sqliteStore(new DatabaseSync('limits.db'))`. The database stays open when the store is closed. */
export function sqliteStore(database: Database, now = () => Date.now() * 1000): Store {
  database.exec('pragma journal_mode = wal; pragma synchronous = off; pragma busy_timeout = 1000')
  database.exec('create table if not exists limits (id blob primary key, expires real, state blob)')
  const read = database.prepare('select state from limits where id = ?')
  const write = database.prepare('insert or replace into limits values (?, ?, ?)')
  const remove = database.prepare('delete from limits where id = ?')
  const sweep = database.prepare(
    'delete from limits where rowid in (select rowid from limits where expires < ? limit 2)',
  )

  const updateMany: UpdateMany = async (ids, change) => {
    const keys = ids.map((id) => createHash('sha256').update(id, 'utf16le').digest()) // any key, and none too long
    try {
      database.exec('begin immediate')
      const before = keys.map((key) => (read.get(key) as { state: Uint8Array } | undefined)?.state)
      const after = change(before, now())
      for (const [i, { state, expiresAt }] of after.entries()) {
        if (state === before[i]) continue
        if (!before[i]) sweep.run(now())
        if (state) write.run(keys[i], expiresAt, state)
        else remove.run(keys[i])
      }
      database.exec('commit')
      return [] // the lock was held: no other process came in between
    } catch (cause) {
      try {
        database.exec('rollback')
      } catch {
        // it had not begun
      }
      throw new StoreError('STORE_BUSY', 'SQLite did not decide', { cause })
    }
  }
  const updates = { updateMany }
  return {
    guard,
    keyspace: (...limiter) => keyspaceOver(updates, ...limiter),
    now: () => Math.floor(performance.now() * 1000),
    close() {},
  }
}
