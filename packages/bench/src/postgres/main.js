// postgresStore beside redisStore, beside the plainest statement, and beside rate-limiter-flexible on Postgres; then the space of a
// key after churn. Each server runs here, with its durability as it comes. All calls are of keys that have come before. Prints the
// figures with their bars: npm run bench -- postgres
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { median, ratios } from '@sluice/harness/figures'
import { startPostgres } from '@sluice/harness/postgres'
import { postgresStore } from '@sluice/postgres'
import pg from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { inRounds } from '../figures/rounds.js'
import { short } from '../figures/table.js'
import { startRedis } from '../processes/redis-servers.js'
import { measureSpace } from './space.js'

/** @typedef {(key: string) => Promise<object>} Consume */

const ROUNDS = Number(process.argv[2] ?? 7)
const MS = Number(process.argv[3] ?? 1500)
/** More than a hot key gets in all rounds. */
const BURST = 75_000_000
const KEYS = 10_000
const CALLERS = 64

const server = await startPostgres({ settings: { fsync: 'on', shared_buffers: '128MB' } })
const redis = await startRedis()
const pool = new pg.Pool({ connectionString: server.url, max: 10 })
const stores = {
  redis: redisStore({ host: redis.host, port: redis.port }),
  postgres: postgresStore(pool),
  logged: postgresStore(pool, { table: 'sluice_logged', logged: true }),
  prepared: postgresStore(pool, { table: 'sluice_prepared', prepare: true }),
  loggedPrepared: postgresStore(pool, { table: 'sluice_logged_prepared', logged: true, prepare: true }),
}
await Promise.all(Object.values(stores).map((store) => store.ready()))

const spread = { callers: CALLERS, keys: KEYS }
const hot = { callers: CALLERS, keys: 1 }
const alone = { callers: 1, keys: KEYS }
/** A statement with a value, sent as the store sends its own. @type {Consume} */
const selectOne = () => pool.query({ text: 'select $1::text as one', values: ['1'] })
const [onRedis, onPostgres, onLogged, onPrepared, onLoggedPrepared] = Object.values(stores).map(consumeOn)
/** Its statements are prepared and its table is logged, and no option changes either. */
const flexible = await flexibleOnPostgres('flexible')
const flexibleUnlogged = await flexibleOnPostgres('flexible_unlogged')
await pool.query('alter table flexible_unlogged set unlogged')
await visitAll([onRedis, onPostgres, onLogged, onPrepared, onLoggedPrepared, flexible, flexibleUnlogged])

console.log(`medians of ${ROUNDS} rounds of ${MS} ms; Postgres ${await versionOf()}\n`)
console.log('| | of each | of the other | ratio | bar |')
console.log('|---|---|---|---|---|')
await compare('64 callers, spread keys, beside redisStore', spread, onPostgres, onRedis, 'at least 0.07')
await compare('64 callers, one hot key, beside redisStore', hot, onPostgres, onRedis, 'at least 0.12')
await compare('one caller, beside select 1', alone, onPostgres, selectOne, 'at least 1 / 3.2 = 0.3125')
// RateLimiterPostgres prepares its statements. The bar is judged where both do, as one that plans each statement anew is slower whatever
// it does; what a user gets without an option of either is beside it.
const beside = 'beside RateLimiterPostgres'
await compare(`64 callers, spread keys, ${beside}, both prepared`, spread, onPrepared, flexible, 'at least 5')
await compare(`64 callers, spread keys, ${beside}, each as it comes`, spread, onPostgres, flexible)
await compare(`64 callers, one hot key, ${beside}, each as it comes`, hot, onPostgres, flexible)
await compare(
  `64 callers, spread keys, ${beside}, both unlogged and prepared`,
  spread,
  onPrepared,
  flexibleUnlogged,
)
await compare(
  `64 callers, spread keys, ${beside}, both logged and prepared`,
  spread,
  onLoggedPrepared,
  flexible,
)
await compare('64 callers, spread keys, logged beside unlogged', spread, onLogged, onPostgres)
await compare('one caller, logged beside unlogged', alone, onLogged, onPostgres)
console.log()
await measureSpace(pool)

for (const store of Object.values(stores)) await store.close()
await pool.end()
await redis.stop()
await server.stop()

/** @param {import('@sluice/core').Store} store @returns {Consume} */
function consumeOn(store) {
  // None is denied, and no key is full again before its next call.
  const policies = [gcra({ limit: 1, window: '1m', burst: BURST })]
  const limiter = createLimiter({ name: 'bench', policies, store, deadline: '10s', onStoreError: 'throw' })
  return (key) => limiter.consume(key)
}

/** @param {string} tableName @returns {Promise<Consume>} */
function flexibleOnPostgres(tableName) {
  return new Promise((resolve, reject) => {
    const options = { storeClient: pool, storeType: 'pool', tableName, points: BURST, duration: 3600 }
    const limiter = new RateLimiterPostgres(options, (error) =>
      error ? reject(error) : resolve((key) => limiter.consume(key)),
    )
  })
}

/** Calls each key once. @param {readonly (Consume | undefined)[]} limiters */
async function visitAll(limiters) {
  for (const consume of limiters) {
    for (let key = 0; key < KEYS; key += CALLERS) {
      const visits = Array.from({ length: CALLERS }, async (_, i) => consume?.(`user:${(key + i) % KEYS}`))
      await Promise.all(visits)
    }
  }
}

/**
 * Both in turn, in each round, so that what else the machine does meets both.
 * @param {string} title @param {{ callers: number, keys: number }} load
 * @param {Consume | undefined} own @param {Consume | undefined} other @param {string} bar
 */
async function compare(title, load, own, other, bar = '') {
  const turns = await inRounds(['own', 'other'], { rounds: ROUNDS }, (name) =>
    perSecond(name === 'own' ? own : other, load),
  )
  const [mine = [], theirs = []] = turns.values()
  const figures = [`${short(median(mine))}/s`, `${short(median(theirs))}/s`]
  console.log(`| ${title} | ${figures.join(' | ')} | ${median(ratios(mine, theirs)).toFixed(3)} | ${bar} |`)
}

/** @param {Consume | undefined} consume @param {{ callers: number, keys: number }} load */
async function perSecond(consume, { callers, keys }) {
  let calls = 0
  const began = performance.now()
  const until = began + MS
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < until) {
        const decision = await consume?.(`user:${calls++ % keys}`)
        // A denial is remembered, so that the calls after it ask no store.
        if (decision && 'allowed' in decision && !decision.allowed)
          throw new Error('a call of the bench was denied')
      }
    }),
  )
  return calls / ((performance.now() - began) / 1000)
}

async function versionOf() {
  const { rows } = await pool.query('show server_version')
  return rows[0].server_version
}
