// postgresStore beside redisStore, beside the plainest statement, and beside rate-limiter-flexible on Postgres; then the space of a
// key after churn. Each server runs here, with its durability as it comes. Prints the figures with their bars: npm run bench -- postgres
import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { startPostgres } from '@sluice/harness/postgres'
import { postgresStore } from '@sluice/postgres'
import pg from 'pg'
import { RateLimiterPostgres } from 'rate-limiter-flexible'
import { startRedis } from '../processes/redis-servers.js'
import { measureSpace } from './space.js'

/** @typedef {(key: string) => Promise<unknown>} Consume */

const ROUNDS = Number(process.argv[2] ?? 7)
const MS = Number(process.argv[3] ?? 1500)
const BURST = 1_250_000
const KEYS = 10_000
const CALLERS = 64

const server = await startPostgres({ settings: { fsync: 'on', shared_buffers: '128MB' } })
const redis = await startRedis()
const pool = new pg.Pool({ connectionString: server.url, max: 10 })
const stores = {
  redis: redisStore({ host: redis.host, port: redis.port }),
  postgres: postgresStore(pool),
  logged: postgresStore(pool, { table: 'sluice_logged', logged: true }),
}
await Promise.all(Object.values(stores).map((store) => store.ready()))

const spread = { callers: CALLERS, keys: KEYS }
const hot = { callers: CALLERS, keys: 1 }
const alone = { callers: 1, keys: KEYS }
const flexible = await flexibleOnPostgres()
/** A statement with a value, sent as the store sends its own. @type {Consume} */
const selectOne = () => pool.query({ text: 'select $1::text as one', values: ['1'] })
const [onRedis, onPostgres, onLogged] = Object.values(stores).map(consumeOn)

console.log(`medians of ${ROUNDS} rounds of ${MS} ms; Postgres ${await versionOf()}\n`)
console.log('| | of each | of the other | ratio | bar |')
console.log('|---|---|---|---|---|')
await compare('64 callers, spread keys, beside redisStore', spread, onPostgres, onRedis, 'at least 0.07')
await compare('64 callers, one hot key, beside redisStore', hot, onPostgres, onRedis, 'at least 0.12')
await compare('one caller, beside select 1', alone, onPostgres, selectOne, 'at least 1 / 3.2 = 0.3125')
await compare(
  '64 callers, spread keys, beside RateLimiterPostgres',
  spread,
  onPostgres,
  flexible,
  'at least 5',
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
  // None is denied, and a state lasts for longer than the run.
  const policies = [gcra({ limit: 100, window: '1h', burst: BURST })]
  const limiter = createLimiter({ name: 'bench', policies, store, deadline: '10s', onStoreError: 'throw' })
  return (key) => limiter.consume(key)
}

/** @returns {Promise<Consume>} */
function flexibleOnPostgres() {
  return new Promise((resolve, reject) => {
    const options = {
      storeClient: pool,
      storeType: 'pool',
      tableName: 'flexible',
      points: BURST,
      duration: 3600,
    }
    const limiter = new RateLimiterPostgres(options, (error) =>
      error ? reject(error) : resolve((key) => limiter.consume(key)),
    )
  })
}

/**
 * Both in turn, in each round, so that what else the machine does meets both.
 * @param {string} title @param {{ callers: number, keys: number }} load
 * @param {Consume | undefined} own @param {Consume | undefined} other @param {string} bar
 */
async function compare(title, load, own, other, bar = '') {
  /** @type {{ mine: number, theirs: number, ratio: number }[]} */
  const rounds = []
  for (let round = 0; round < ROUNDS; round++) {
    const [mine, theirs] = [await perSecond(own, load), await perSecond(other, load)]
    rounds.push({ mine, theirs, ratio: mine / theirs })
  }
  /** @param {'mine' | 'theirs' | 'ratio'} of */
  const median = (of) => rounds.map((each) => each[of]).sort((a, b) => a - b)[rounds.length >> 1] ?? NaN
  const [mine, theirs] = [median('mine').toFixed(0), median('theirs').toFixed(0)]
  console.log(`| ${title} | ${mine}/s | ${theirs}/s | ${median('ratio').toFixed(3)} | ${bar} |`)
}

/** @param {Consume | undefined} consume @param {{ callers: number, keys: number }} load */
async function perSecond(consume, { callers, keys }) {
  let calls = 0
  const began = performance.now()
  const until = began + MS
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < until) await consume?.(`user:${calls++ % keys}`)
    }),
  )
  return calls / ((performance.now() - began) / 1000)
}

async function versionOf() {
  const { rows } = await pool.query('show server_version')
  return rows[0].server_version
}
