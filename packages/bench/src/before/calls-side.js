// One build on one path of calls, in a process of its own. Arguments: the checkout, the path and an empty folder. It is asked
// for so many calls, and tells the CPU that each took.
import { answering } from '../processes/child.js'
import { closedLoop } from '../redis/loops/closed.js'
import { httpPaths, machinePaths, queuePaths } from './call-paths.js'
import { libraryOf } from './library.js'

const [root = '', name = '', folder = ''] = process.argv.slice(2)
const path = { ...httpPaths, ...machinePaths, ...queuePaths }[name]
if (!path) throw new Error(`no path is called ${name}`)
const { callers, open } = path

const KEYS = 1000
/** Enough for the compiler to be done. */
const WARM_UP_CALLS = 50_000
/** The last of them say how fast the path is. */
const LAST_CALLS = 5000

const call = libraryOf(root).then((library) => open({ root, folder, library }))

answering(async (/** @type {{ calls?: number }} */ { calls }) => {
  if (calls !== undefined) return nanosecondsEach(calls)
  await nanosecondsEach(WARM_UP_CALLS)
  return nanosecondsEach(LAST_CALLS)
})

/** @param {number} calls */
async function nanosecondsEach(calls) {
  const { cpuUs } = await closedLoop(
    // A call that may not pass rejects, or is a decision.
    { call: await call, allowed: (answer) => Object(answer).allowed !== false },
    { callers, keys: KEYS, calls },
  )
  return cpuUs * 1000
}
