import { startChild } from '../processes/child.js'

/** @typedef {import('../contender.js').Limit} Limit */
/** @typedef {import('./connection.js').Address} Address */

/** @typedef {import('./loops/closed.js').Load} Load */
/** @typedef {import('./loops/open.js').OpenLoad} OpenLoad */
/** @typedef {import('./loops/timed.js').TimedLoad} TimedLoad */
/** @typedef {Load | OpenLoad | TimedLoad} AnyLoad */

/** @typedef {import('../processes/child.js').Child} ClientProcess It takes loads, and answers what it saw of them. */

/**
 * A process with one contender, connected to a server or to a Cluster's nodes.
 * @param {string} name
 * @param {Limit} limit
 * @param {Address | readonly Address[]} address
 * @returns {ClientProcess}
 */
export function startClient(name, limit, address) {
  const place = (/** @type {Address} */ { host, port }) => ({ host, port })
  const places = Array.isArray(address) ? address.map(place) : place(/** @type {Address} */ (address))
  return startChild(new URL('client.js', import.meta.url), [
    name,
    JSON.stringify(limit),
    JSON.stringify(places),
  ])
}
