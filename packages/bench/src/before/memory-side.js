// One build on one path in memory, in a process of its own. Arguments: the checkout and the path. It is asked to warm up
// once, and then for rounds: the CPU that so many calls took.
import { answering } from '../processes/child.js'
import { libraryOf } from './library.js'
import { algorithms, memoryPaths } from './memory-paths.js'

/** @typedef {ReturnType<import('./library.js').Library['createLimiter']>} Limiter */

const [root = '', name = ''] = process.argv.slice(2)
const path = memoryPaths[name]
if (!path) throw new Error(`no path is called ${name}`)
const { policies, operation, keys: count, denied = false, mixed = false } = path

/** Enough for the compiler to be done, and for every key to be known; the same number for both builds. */
const WARM_UP_CALLS = 300_000
/** The last of them say how fast the path is. */
const LAST_CALLS = 50_000
/** Calls of each other algorithm where all are in use. */
const MIXED_CALLS = 50_000

const keys = Array.from({ length: count }, (_, i) => `user:${i}`)
const call = { decide, consume, decideAll }[operation]
/** The limiter of the second key, once it was made. @type {Limiter[]} */
const others = []
let next = 0

const ready = libraryOf(root).then(async (library) => {
  if (mixed) {
    for (const policy of Object.values(algorithms))
      await call(library.createLimiter({ policies: [policy(library)] }), MIXED_CALLS)
  }
  const limiter = library.createLimiter({ policies: policies(library) })
  if (denied) for (const key of keys) await limiter.decide(key) // takes what there is
  return limiter
})

answering(async (/** @type {{ calls?: number }} */ { calls }) =>
  calls === undefined ? warmUp(await ready) : nanosecondsEach(await ready, calls),
)

/** Nanoseconds of CPU a call, its garbage collection included. @param {Limiter} limiter @param {number} calls */
async function nanosecondsEach(limiter, calls) {
  const start = process.cpuUsage()
  const allowed = await call(limiter, calls)
  const { user, system } = process.cpuUsage(start)
  if (allowed !== (denied ? 0 : calls)) throw new Error(`${allowed} of ${calls} calls were allowed`)
  return ((user + system) * 1000) / calls
}

/** The time that one of the last calls took. @param {Limiter} limiter */
async function warmUp(limiter) {
  await nanosecondsEach(limiter, WARM_UP_CALLS - LAST_CALLS)
  return nanosecondsEach(limiter, LAST_CALLS)
}

/** How many of the next calls are allowed. @param {Limiter} limiter @param {number} calls */
function decide(limiter, calls) {
  let allowed = 0
  for (let i = 0; i < calls; i++) {
    const decision = /** @type {import('@sluice/core').Decision} */ (limiter.decide(keyAfter()))
    if (decision.allowed) allowed++
  }
  return allowed
}

/** @param {Limiter} limiter @param {number} calls */
async function consume(limiter, calls) {
  let allowed = 0
  for (let i = 0; i < calls; i++) if ((await limiter.consume(keyAfter())).allowed) allowed++
  return allowed
}

/** @param {Limiter} limiter @param {number} calls */
async function decideAll(limiter, calls) {
  const library = await libraryOf(root)
  const other = (others[0] ??= library.createLimiter({ policies: policies(library) }))
  let allowed = 0
  for (let i = 0; i < calls; i++) {
    const key = keyAfter()
    const whole = library.decideAll([
      { limiter, key },
      { limiter: other, key },
    ])
    if (/** @type {import('@sluice/core').WholeDecision} */ (whole).allowed) allowed++
  }
  return allowed
}

function keyAfter() {
  if (next === keys.length) next = 0
  return /** @type {string} */ (keys[next++])
}
