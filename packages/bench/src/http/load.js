// The process that makes requests.
import autocannon from 'autocannon'
import { answering } from '../processes/child.js'

/**
 * @typedef {object} Requests
 * @property {number} port
 * @property {number} amount
 * @property {number} status That every response must have.
 * @property {boolean} users Each request is another user's, in turn; else all come from one address.
 */

const CONNECTIONS = 64
const USERS = 1000

/** How often autocannon looks whether it is done, in milliseconds; every second by itself. */
const LOOK_MS = 20

answering(async (/** @type {Requests} */ { port, amount, status, users }) => {
  const start = performance.now()
  let end = start
  const result = await new Promise((resolve, reject) => {
    const options = { url: `http://127.0.0.1:${port}/`, connections: CONNECTIONS, amount, sampleInt: LOOK_MS }
    const run = autocannon({ ...options, ...(users && { requests }) }, (error, all) => {
      if (error) reject(error)
      else resolve(all)
    })
    run.on('response', () => (end = performance.now()))
  })
  const right = result.statusCodeStats?.[status]?.count ?? 0
  if (right !== amount || result.errors > 0)
    throw new Error(
      `${right} of ${amount} responses were ${status}: ${JSON.stringify(result.statusCodeStats)}`,
    )
  return (amount / (end - start)) * 1000
})

const requests = Array.from({ length: USERS }, (_, i) => ({ headers: { 'x-user': `user:${i}` } }))
