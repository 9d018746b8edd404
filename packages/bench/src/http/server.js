// A server process. Arguments: the framework, the contender, its limit, and Redis's address where it needs one.
import { once } from 'node:events'
import { connect } from '../redis/connection.js'
import { answering } from '../processes/child.js'
import { frameworkNamed } from './frameworks.js'

const [framework = '', contender = '', limit = '', address = ''] = process.argv.slice(2)

/** @returns {Promise<number>} the port */
async function start() {
  const { contenders } = await frameworkNamed(framework)
  const serve = contenders[contender]
  if (!serve) throw new Error(`${framework} has no ${contender}`)
  const redis = /** @type {import('../redis/connection.js').Client} */ (
    address ? connect(JSON.parse(address)) : undefined
  )
  const server = await serve({ ...JSON.parse(limit), redis })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port
}

const port = start()

answering(async () => {
  const { user, system } = process.cpuUsage()
  return { port: await port, cpuUs: user + system }
})
