// The process that makes requests.
import autocannon from 'autocannon'
import { answering } from '../processes/child.js'

/**
 * @typedef {object} Requests
 * @property {number} port
 * @property {number} amount
 */

const CONNECTIONS = 64
/** Each request is of another user than the one before. Each connection has its own, so that there are about a thousand: those of all would take longer to write than to send. */
const USERS_OF_ONE = 16

/** How often autocannon looks whether it is done, in milliseconds; every second by itself. */
const LOOK_MS = 20

answering(async (/** @type {Requests} */ { port, amount }) => {
  let [start, end, clients] = [NaN, NaN, 0]
  const result = await new Promise((resolve, reject) => {
    const options = { url: `http://127.0.0.1:${port}/`, connections: CONNECTIONS, amount, sampleInt: LOOK_MS }
    const setupClient = (/** @type {autocannon.Client} */ client) => client.setRequests(requestsOf(clients++))
    const run = autocannon({ ...options, setupClient }, (error, all) => {
      if (error) reject(error)
      else resolve(all)
    })
    run.on('response', () => {
      end = performance.now()
      if (Number.isNaN(start)) start = end
    })
  })
  const right = result.statusCodeStats?.[200]?.count ?? 0
  if (right !== amount || result.errors > 0)
    throw new Error(`${right} of ${amount} responses were 200: ${JSON.stringify(result.statusCodeStats)}`)
  return ((amount - 1) / (end - start)) * 1000
})

/** @param {number} client */
function requestsOf(client) {
  return Array.from({ length: USERS_OF_ONE }, (_, i) => ({
    headers: { 'x-user': `user:${client * USERS_OF_ONE + i}` },
  }))
}
