// A contender's process: node server.js NAME REDIS_PORT. Tells its port, and ends with the process that started it.
import { once } from 'node:events'
import { contenders } from './contenders.js'

const [name, redisPort] = process.argv.slice(2)
const contender = contenders.find((one) => one.name === name)
if (!contender) throw new Error(`there is no contender ${name}`)
process.on('disconnect', () => process.exit())
const server = await contender.serve({ host: '127.0.0.1', port: Number(redisPort) })
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const address = /** @type {import('node:net').AddressInfo} */ (server.address())
process.send?.(address.port)
