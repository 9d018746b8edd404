/**
 * The calls of a build that are measured over a store: on one key, or `together` on two, each under a limiter of its own. Nothing is
 * answered but by the store, and no deadline cuts a slow answer off.
 * @param {import('./library.js').Library} library
 * @param {import('@sluice/core').Store} store
 * @param {readonly import('@sluice/core').Policy[]} policies
 * @param {boolean} [together]
 * @returns {import('../contender.js').Contender}
 */
export function limitedCalls(library, store, policies, together) {
  const open = (/** @type {string} */ name) =>
    library.createLimiter({ name, policies, store, onStoreError: 'throw', deadline: '10s' })
  const [limiter, other] = [open('bench'), open('other')]
  if (!together) return { call: (key) => limiter.consume(key), allowed: (decision) => decision.allowed }
  return {
    call: (key) =>
      library.consumeAll([
        { limiter, key },
        { limiter: other, key },
      ]),
    allowed: (whole) => whole.allowed,
  }
}
