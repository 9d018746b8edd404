// Runs the program that the command line names, in an empty project that has the packages installed, and says what it did.
// What it serves is served on a free port, and has to answer 200 until the limit that it shows is reached, and then 429; what it
// fetches is answered here; a Nest module is started as an application. One that does nothing of this has to end without an error.
import { once } from 'node:events'
import { Server } from 'node:net'
import { pathToFileURL } from 'node:url'

/** @type {Server[]} */
const servers = []
/** @type {Server['listen']} */
const listen = Reflect.get(Server.prototype, 'listen')
Server.prototype.listen = /** @this {Server} @param {any[]} args */ function (first, ...args) {
  // A socket in the file system is between processes of ours: nothing asks there.
  if (typeof first === 'string' || first?.path) return listen.call(this, first, ...args)
  servers.push(this)
  return listen.call(this, typeof first === 'object' ? { ...first, port: 0 } : 0, ...args)
}
const realFetch = globalThis.fetch
let fetched = 0
globalThis.fetch = async () => (fetched++, Response.json({}))

const program = await import(pathToFileURL(process.argv[2] ?? '').href)
if (program.AppModule) {
  const { NestFactory } = await import('@nestjs/core')
  const app = await NestFactory.create(await applicationOf(program.AppModule), { logger: false })
  await app.listen(0)
}
program.server?.listen()
await program.started // of what awaits in CommonJS
if (servers[0]) await askUntilDenied(servers[0])
else console.log(fetched > 0 ? `fetched ${fetched} time` : 'ran to its end')
process.exit()

/** @param {Server} server */
async function askUntilDenied(server) {
  if (!server.listening) await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  for (let served = 0; served <= 200; served++) {
    const response = await realFetch(`http://localhost:${port}/`)
    await response.arrayBuffer()
    const { status, headers } = response
    if (status === 200) continue
    const limit = headers.get('x-ratelimit-limit')
    console.log(`served ${served} of ${limit}, then ${status}`)
    if (status === 429 && served === Number(limit)) return
    throw new Error(`429 was due after ${limit}`)
  }
  throw new Error('no request was denied')
}

/**
 * An application with one route, for the module of an example to guard.
 * @param {import('@nestjs/common').Type} module
 */
async function applicationOf(module) {
  const { Controller, Get, Module } = await import('@nestjs/common')
  class Hello {
    hello() {
      return 'hello'
    }
  }
  class Application {}
  Get()(Hello.prototype, 'hello', Reflect.getOwnPropertyDescriptor(Hello.prototype, 'hello') ?? {})
  Controller()(Hello)
  Module({ imports: [module], controllers: [Hello] })(Application)
  return Application
}
