// Bytes a key on disk, its index included, after as much churn as an hour brings to keys that call each minute.
import { createLimiter, gcra } from '@sluice/core'
import { postgresStore } from '@sluice/postgres'

const KEYS = 20_000
/** Calls of each key: one a minute for an hour. */
const CALLS = 60
const AT_ONCE = 400

/** @param {import('pg').Pool} pool */
export async function measureSpace(pool) {
  let now = Date.now() * 1000
  const store = postgresStore(pool, { table: 'space', clock: () => now, denialCache: false })
  const policies = [gcra({ limit: 100, window: '1d' })]
  const limiter = createLimiter({ name: 'space', policies, store, deadline: '30s', onStoreError: 'throw' })
  for (let call = 0; call < CALLS; call++) {
    for (let key = 0; key < KEYS; key += AT_ONCE) {
      const keys = Array.from({ length: AT_ONCE }, () => Math.floor(Math.random() * KEYS))
      const all = call === 0 ? keys.map((_, i) => key + i) : keys
      await Promise.all(all.map((each) => limiter.consume(`user:${each}`)))
      now += (60e6 * AT_ONCE) / KEYS
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 1500)) // until the statistics are in
  const { rows } =
    await pool.query(`select pg_total_relation_size('space') / (select count(*) from space) as bytes,
    pg_relation_size('space') / (select count(*) from space) as heap,
    100.0 * n_tup_hot_upd / n_tup_upd as hot, n_tup_upd as updates
    from pg_stat_user_tables where relname = 'space'`)
  const { bytes, heap, hot, updates } = rows[0]
  console.log(
    `${KEYS} keys of one gcra after ${updates} updates: ${bytes} bytes a key with its index (bar: 240), ${heap} without;`,
  )
  console.log(`${Number(hot).toFixed(1)} % of the updates were HOT (bar: 95)`)
  await store.close()
}
