// Runs the program that the command line names, in an empty project that has the packages installed, and says what it did.
// What it serves is served on a free port and asked once, and the answer has to show a limit; what it fetches is answered
// here; a Nest module is started as an application. One that does nothing of this has to end without an error.
import { once } from 'node:events'
import { Server } from 'node:net'
import { pathToFileURL } from 'node:url'

/** @type {Server[]} */
const servers = []
/** @type {Server['listen']} */
const listen = Reflect.get(Server.prototype, 'listen')
Server.prototype.listen = /** @this {Server} @param {any[]} args */ function (first, ...args) {
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
if (servers[0]) await ask(servers[0])
else console.log(fetched > 0 ? `fetched ${fetched} time` : 'ran to its end')
process.exit()

/** @param {Server} server */
async function ask(server) {
  if (!server.listening) await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const { status, headers } = await realFetch(`http://localhost:${port}/`)
  const limit = headers.get('x-ratelimit-limit')
  console.log(`served, ${status}, ${headers.get('x-ratelimit-remaining')} of ${limit} left`)
  if (limit === null) throw new Error('the answer has no X-RateLimit-Limit')
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
