// The subject of a measurement, ours or a peer's: something that decides about calls of a key.

/**
 * @typedef {object} Limit
 * @property {number} limit
 * @property {number} windowMs
 *
 * @typedef {object} Contender
 * @property {(key: string) => any} call Decides about one call of cost 1.
 * @property {boolean} [sync] `call` answers without a promise, which is not awaited.
 * @property {(decision: any) => boolean} allowed
 * @property {(error: any) => boolean} [isDenial] Where denials are thrown: whether this is one.
 * @property {boolean} [hotKeyOnly] Keeps one limiter a key, too large to have thousands of them.
 * @property {number} [keptBack] Units of a long window that it does not give out (leases).
 * @property {boolean} [floor] Limits nothing: the least that any limiter costs.
 */

/** A limit that is never reached: every call is admitted. The most that exact integers allow for a minute is 75 million. */
export const GENEROUS = { limit: 50_000_000, windowMs: 60_000 }

/** Used up by three calls, and not refilled while it is looked at. */
const TIGHT = { limit: 3, windowMs: 86_400_000 }

/**
 * Nothing is measured that does not work: of five calls of a key exactly three pass (less what is kept back), and another
 * key is unaffected.
 * @param {string} name
 * @param {(limit: Limit) => Contender | Promise<Contender>} open
 */
export async function checkDecisions(name, open) {
  const contender = await open(TIGHT)
  if (contender.floor) return
  const key = `check:${process.pid}`
  const verdicts = []
  for (let i = 0; i < 5; i++) verdicts.push(await verdictOf(contender, key))
  if (!contender.hotKeyOnly) verdicts.push(await verdictOf(contender, `${key}:other`))
  const most = TIGHT.limit - (contender.keptBack ?? 0)
  const expected = verdicts.map((_, i) => i < most || i === 5)
  if (String(verdicts) !== String(expected))
    throw new Error(`${name} decides ${verdicts.join()} where ${expected.join()} is right`)
}

/**
 * Whether a call passes.
 * @param {Contender} contender
 * @param {string} key
 */
async function verdictOf({ call, allowed, isDenial }, key) {
  try {
    return allowed(await call(key))
  } catch (error) {
    if (isDenial?.(error)) return false
    throw error
  }
}
