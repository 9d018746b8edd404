// One process of a race: opens a recipe's store on what is named, says so, and calls one key 250 times at once when it is told the key.
import { createLimiter, gcra } from '@sluice/core'

const CALLS = 250
const LIMIT = 100

const [engine = '', place = ''] = process.argv.slice(2)
const store = await open()
const policies = [gcra({ limit: LIMIT, window: '1d', burst: LIMIT })]
const limiter = createLimiter({ name: 'race', policies, store, deadline: '1m', onStoreError: 'throw' })
await limiter.peek('warm')
process.send?.('ready')
process.once('message', (key) => void race(String(key)))

/** @param {string} key */
async function race(key) {
  const calls = Array.from({ length: CALLS }, () => limiter.consume(key))
  const admitted = (await Promise.all(calls)).filter(({ allowed }) => allowed).length
  process.send?.(admitted, () => process.exit())
}

async function open() {
  if (engine === 'mariadb') {
    const { createPool } = await import('mysql2/promise')
    const { mariadbStore } = await import('../../../docs/recipes/mariadb.ts')
    return mariadbStore(
      createPool({ host: '127.0.0.1', port: Number(place), user: 'root', database: 'race' }),
    )
  }
  const { DatabaseSync } = await import('node:sqlite')
  const { sqliteStore } = await import('../../../docs/recipes/sqlite.ts')
  return sqliteStore(new DatabaseSync(place))
}
