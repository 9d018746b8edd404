// One build on one path over Postgres, in a process of its own with one pool. Arguments: the checkout, the path, its table and the
// URL of the server. It takes loads.
import pg from 'pg'
import { answering } from '../processes/child.js'
import { closedLoop } from '../redis/loops/closed.js'
import { limitedCalls } from './limited-calls.js'
import { libraryOf, postgresOf } from './library.js'
import { postgresPaths } from './postgres-paths.js'

const [root = '', name = '', table = '', connectionString = ''] = process.argv.slice(2)
const path = postgresPaths[name]
if (!path) throw new Error(`no path is called ${name}`)
const { callers, keys, together } = path
/** More than a hot key gets in all rounds. */
const BURST = 75_000_000

/** @type {Promise<import('../contender.js').Contender>} */
const contender = Promise.all([libraryOf(root), postgresOf(root)]).then(([library, { postgresStore }]) => {
  const store = postgresStore(new pg.Pool({ connectionString, max: 10 }), { table })
  const policies = [library.gcra({ limit: 1, window: '1m', burst: BURST })]
  return limitedCalls(library, store, policies, together)
})
let from = 0

answering(async (/** @type {{ calls: number, callers?: number }} */ load) => {
  const seen = await closedLoop(await contender, { callers, keys, from, ...load })
  from += seen.calls
  return seen
})
