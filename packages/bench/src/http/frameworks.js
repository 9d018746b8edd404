/**
 * @typedef {import('../contender.js').Limit & { redis: import('../redis/connection.js').Client }} Given `redis` is
 * there for those whose name says so.
 *
 * @typedef {object} Framework
 * @property {string} title
 * @property {string} peer What users of the framework usually take.
 * @property {number} amount Requests in a turn: about a quarter of a second of them.
 * @property {boolean} [isOnlyShown] No goal was set for it.
 * @property {Record<string, (given: Given) => Promise<number>>} contenders Each starts a server and gives its port.
 */

/** The file of each. */
export const frameworks = /** @type {const} */ (['express', 'koa', 'nest', 'fastify', 'hono'])

/** Only what is measured is loaded. @param {string} name @returns {Promise<Framework>} */
export async function frameworkNamed(name) {
  return import(`./frameworks/${name}.js`)
}
