// Run by Bun: prints what went wrong with a store of Postgres over its own client, as JSON. The argument is a URL of Postgres.
import { createLimiter, gcra } from '@sluice/core'
import { postgresStore } from '@sluice/postgres'

/** @type {string[]} */
const wrong = []
/** @param {string} what @param {unknown} expected @param {unknown} seen */
const expect = (what, expected, seen) => {
  if (String(seen) !== String(expected)) wrong.push(`${what}: ${String(seen)}, not ${String(expected)}`)
}
/** @param {() => unknown} act */
const codeOf = async (act) => {
  try {
    await act()
    return 'none'
  } catch (error) {
    return /** @type {{ code?: string }} */ (error).code
  }
}

// Not an import: there are no types of Bun here.
const { SQL } = Reflect.get(globalThis, 'Bun')
const sql = new SQL(process.argv[2], { prepare: false })
const store = postgresStore(sql)
const policies = [gcra({ limit: 3, window: '1d', burst: 3 })]
const limiter = createLimiter({ name: 'bun', policies, store, onStoreError: 'throw', deadline: '5s' })
const calls = await Promise.all(Array.from({ length: 5 }, () => limiter.consume('k')))
expect('admitted of 5', 3, calls.filter(({ allowed }) => allowed).length)
await sql.unsafe('drop table sluice')
expect('a dropped table', 'STORE_ERROR', await codeOf(() => limiter.consume('b')))
expect('a table that is made again', 'none', await codeOf(() => limiter.consume('b')))
expect('its limit', 1, (await limiter.consume('b')).remaining)
const reserved = await sql.reserve()
expect('a reserved connection', 'INVALID_OPTION', await codeOf(() => postgresStore(reserved)))
reserved.release()
await sql.begin(async (/** @type {never} */ transaction) => {
  expect('a transaction', 'INVALID_OPTION', await codeOf(() => postgresStore(transaction)))
})
expect('where it is', new URL(process.argv[2] ?? '').host, store.endpoint)
await store.close()
await sql.end()
console.log(JSON.stringify({ postgres: wrong }))
process.exit()
