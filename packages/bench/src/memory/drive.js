/** @typedef {import('../contender.js').Contender} Contender */

/** Calls between two looks at the clock. */
const CHUNK = 200

/**
 * Calls one key after the other, each as often as the next, until it took `ms` milliseconds of CPU or `calls` are
 * made; gives calls a second of CPU. Other programs on the machine do not count, what a contender leaves to the
 * garbage collector does.
 * @param {Contender} contender
 * @param {readonly string[]} keys
 * @param {{ ms?: number, calls?: number }} until
 */
export async function drive(contender, keys, { ms = Infinity, calls = Infinity }) {
  const loop = contender.sync ? callSync : callAsync
  let made = 0
  let admitted = 0
  let took = 0
  const start = process.cpuUsage()
  do {
    const count = Math.min(CHUNK, calls - made)
    const admittedNow = loop(contender, keys, made % keys.length, count)
    admitted += typeof admittedNow === 'number' ? admittedNow : await admittedNow
    made += count
    took = millisecondsSince(start)
  } while (took < ms && made < calls)
  if (admitted !== made) throw new Error(`${admitted} of ${made} calls were admitted where all should be`)
  return (made / took) * 1000
}

/**
 * @param {Contender} contender
 * @param {readonly string[]} keys
 * @param {number} from
 * @param {number} count
 */
function callSync({ call, allowed }, keys, from, count) {
  let admitted = 0
  for (let i = 0; i < count; i++) {
    if (allowed(call(/** @type {string} */ (keys[from])))) admitted++
    if (++from === keys.length) from = 0
  }
  return admitted
}

/**
 * The same, as those who have to wait.
 * @param {Contender} contender
 * @param {readonly string[]} keys
 * @param {number} from
 * @param {number} count
 */
async function callAsync({ call, allowed }, keys, from, count) {
  let admitted = 0
  for (let i = 0; i < count; i++) {
    if (allowed(await call(/** @type {string} */ (keys[from])))) admitted++
    if (++from === keys.length) from = 0
  }
  return admitted
}

/** @param {NodeJS.CpuUsage} start */
function millisecondsSince(start) {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}
