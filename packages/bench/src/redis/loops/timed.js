/**
 * @typedef {object} TimedLoad
 * @property {'timed'} loop
 * @property {number} callers
 * @property {number} ms
 */

/** Calls between two looks at the clock. */
const CHUNK = 16

/**
 * Callers of one hot key who ask again as soon as they are answered, for a while: processes that are measured together
 * all end at the same time.
 * @param {import('../../contender.js').Contender} contender
 * @param {TimedLoad} load
 */
export async function timedLoop({ call, allowed }, { callers, ms }) {
  let calls = 0
  let admitted = 0
  const start = performance.now()
  let took = 0
  const caller = async () => {
    while (took < ms) {
      for (let i = 0; i < CHUNK; i++) if (allowed(await call('hot'))) admitted++
      calls += CHUNK
      took = performance.now() - start
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return { calls, admitted, perSecond: (admitted / took) * 1000 }
}
