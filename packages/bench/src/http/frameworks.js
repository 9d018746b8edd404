/**
 * @typedef {import('node:http').Server} Server
 *
 * @typedef {object} Framework
 * @property {string} title
 * @property {string} peer What users of the framework usually take.
 * @property {number} mostAdded What Sluice may add to a request at most, in parts of what the peer adds.
 * @property {Record<string, (limit: import('../contender.js').Limit) => Server | Promise<Server>>} contenders Each gives a server that does not listen
 * yet.
 */

/** The file of each. */
export const frameworks = /** @type {const} */ (['express', 'koa', 'nest', 'fastify', 'hono'])

/** Only what is measured is loaded. @param {string} name @returns {Promise<Framework>} */
export async function frameworkNamed(name) {
  return import(`./frameworks/${name}.js`)
}
