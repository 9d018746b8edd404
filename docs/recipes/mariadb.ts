import { createHash } from 'node:crypto'
import { guard, keyspaceOver, type Store, StoreError, type Update } from '@sluice/core/store'

/*
 * Limits in MariaDB or MySQL: read, decide, write if the version is still the one that was read, otherwise begin again. Calls of one key
 * that meet go together, so a process begins again only where another one was faster. Two statements, each committed by itself.
 */

/** A pool of `mysql2/promise`. */
export interface Pool {
  execute(sql: string, values?: (string | number | Buffer)[]): Promise<[unknown, ...unknown[]]>
}

const TABLE = `create table if not exists limits
  (id binary(32) primary key, version bigint not null, expires bigint not null, state mediumblob not null, key (expires))`
const READ = `select version, state, cast(unix_timestamp(now(6)) * 1000000 as unsigned) as now
  from (select 1) as one left join limits on id = ?`
const INSERT = 'insert ignore into limits (version, expires, state, id) values (?, ?, ?, ?)'
const UPDATE = 'update limits set version = ?, expires = ?, state = ? where id = ? and version = ?'

export function mariadbStore(pool: Pool): Store {
  let made: Promise<unknown> | undefined
  const update: Update = async (id, change) => {
    const key = createHash('sha256').update(id, 'utf16le').digest() // any key, and none too long
    try {
      made ??= pool.execute(TABLE)
      await made
      for (;;) {
        const [rows] = await pool.execute(READ, [key])
        const [row] = rows as [{ version: number | null; state: Buffer | null; now: number }]
        const before = row.state?.length ? row.state : undefined // an empty one was reset
        const { result, state, expiresAt } = change(before, Number(row.now))
        if (state === before) return result
        const isNew = row.version === null
        // A row is born with any version, so that it is not taken for one that was deleted in between.
        const version = isNew ? Math.floor(Math.random() * 2 ** 52) : Number(row.version) + 1
        const kept = [version, Math.floor(expiresAt), Buffer.from(state ?? []), key]
        const [written] = isNew
          ? await pool.execute(INSERT, kept)
          : await pool.execute(UPDATE, [...kept, version - 1])
        if ((written as { affectedRows: number }).affectedRows === 1) return result
      }
    } catch (cause) {
      made = undefined
      throw new StoreError('STORE_UNAVAILABLE', 'MariaDB did not decide', { cause })
    }
  }
  return {
    guard,
    denialCache: { maxAge: 1_000_000, maxKeys: 10_000 },
    keyspace: (...limiter) => keyspaceOver(update, ...limiter),
    now: () => Math.floor(performance.now() * 1000),
    close() {},
  }
}
