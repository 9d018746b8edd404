// The applications that scripts of adapters' pages ask. A script puts its limit on `app`; the rest is here: a handler that answers
// with the status that the header `x-answer` asks for, a server on a free port, and `ask`.
import 'reflect-metadata'
import { createServer } from 'node:http'
import { setImmediate as turn } from 'node:timers/promises'

/**
 * A framework's application: what scripts call `app`, and how it is served. `listen` adds the handler, behind the limits, and returns
 * the port.
 * @typedef {{ app: any, listen: () => Promise<number>, close: () => Promise<unknown> | void }} Application
 */

/** Makes an application of each framework. @type {Readonly<Record<string, () => Promise<Application>>>} */
export const frameworks = {
  async express() {
    const { default: express } = await import('express')
    const app = express()
    const server = createServer(app)
    return {
      app,
      listen() {
        app.use((req, res) => void res.status(statusFor(req.headers['x-answer'])).send('ok'))
        app.use(
          /** @type {import('express').ErrorRequestHandler} */
          (error, _req, res, _next) => void res.status(error.status ?? 500).send(error.message),
        )
        return listening(server)
      },
      close: () => closed(server),
    }
  },

  async koa() {
    const { default: Koa } = await import('koa')
    const app = new Koa()
    app.silent = true
    /** @type {import('node:http').Server} */
    let server
    return {
      app,
      listen() {
        app.use((ctx) => {
          ctx.body = 'ok'
          ctx.status = statusFor(ctx.get('x-answer'))
        })
        server = createServer(/** @type {import('node:http').RequestListener} */ (app.callback()))
        return listening(server)
      },
      close: () => closed(server),
    }
  },

  async fastify() {
    const { fastify } = await import('fastify')
    const app = fastify({ forceCloseConnections: true })
    return {
      app,
      async listen() {
        if (!app.hasRoute({ method: 'GET', url: '/' }))
          app.get('/', (request, reply) => reply.code(statusFor(request.headers['x-answer'])).send('ok'))
        watch(app.server)
        return Number(new URL(await app.listen({ host: '127.0.0.1', port: 0 })).port)
      },
      close: () => app.close(),
    }
  },

  async hono() {
    const [{ Hono }, { createAdaptorServer }] = await Promise.all([
      import('hono'),
      import('@hono/node-server'),
    ])
    const app = new Hono()
    const server = createAdaptorServer({ fetch: app.fetch })
    return {
      app,
      listen() {
        app.all('*', (c) => c.body('ok', /** @type {200} */ (statusFor(c.req.header('x-answer')))))
        return listening(/** @type {import('node:http').Server} */ (server))
      },
      close: () => closed(/** @type {import('node:http').Server} */ (server)),
    }
  },

  async nest() {
    const [common, core] = await Promise.all([import('@nestjs/common'), import('@nestjs/core')])
    /** @type {import('@nestjs/common').INestApplication | undefined} */
    let site
    /**
     * The limits of one module on a site with three handlers, `index`, `login` and `health`. Decorators of handlers are given by
     * their names, those of the class as `site`.
     * @param {any} module
     * @param {any} guard
     * @param {Readonly<Record<string, readonly any[]>>} [decorators]
     */
    async function app(module, guard, decorators = {}) {
      class Site {
        index() {
          return 'index'
        }
        login() {
          return 'login'
        }
        health() {
          return 'health'
        }
      }
      for (const name of /** @type {const} */ (['index', 'login', 'health'])) {
        const descriptor = Object.getOwnPropertyDescriptor(Site.prototype, name)
        const all = [...(decorators[name] ?? []), common.Get(name === 'index' ? '/' : name)]
        for (const decorate of all.filter(Boolean)) decorate(Site.prototype, name, descriptor)
      }
      for (const decorate of [...(decorators['site'] ?? []), common.Controller()].filter(Boolean))
        decorate(Site)
      class AppModule {}
      common.Module({
        imports: [module],
        controllers: [Site],
        providers: [{ provide: core.APP_GUARD, useClass: guard }],
      })(AppModule)
      site = await core.NestFactory.create(AppModule, { logger: false, abortOnError: false })
    }
    return {
      app,
      async listen() {
        await site?.listen(0, '127.0.0.1')
        watch(site?.getHttpServer())
        return site?.getHttpServer().address().port
      },
      close: () => site?.close(),
    }
  },
}

/** Asks an application, which begins to listen with the first request. @param {Application} application */
export function asker(application) {
  /** @type {Promise<number> | undefined} */
  let port
  /** @param {string} line @param {Readonly<Record<string, string>>} headers */
  async function request(line, headers) {
    const [method = 'GET', path = '/'] = line.split(' ')
    port ??= application.listen()
    traffic.onTheWay++
    const url = `http://127.0.0.1:${await port}${path}`
    const response = await fetch(url, { method, headers, redirect: 'manual' })
    const body = await response.text()
    traffic.onTheWay--
    // What follows the end of a response on the server's side has a few turns to happen.
    for (let i = 0; i < 10; i++) await turn()
    return { response, body }
  }
  return {
    /** The status of the answer to one request. */
    async ask(line = 'GET /', headers = {}) {
      return (await request(line, headers)).response.status
    },
    /** The status and the named headers of the answer, - for one that is not there; `body` is its text. @param {string} names */
    async see(names, line = 'GET /', headers = {}) {
      const { response, body } = await request(line, headers)
      const seen = names
        .split(' ')
        .map((name) => (name === 'body' ? body : (response.headers.get(name) ?? '-')))
      return [response.status, ...seen].join(' ')
    },
  }
}

/** The status that the header `x-answer` asks for; 200 without one. @param {unknown} asked */
function statusFor(asked) {
  return Number(asked) || 200
}

/** Requests that have not arrived, and responses that have not been read. Meanwhile a fake clock has to stand still. */
export const traffic = { onTheWay: 0 }

/** Counts in `traffic`: a request that arrives, and a response that is sent. @param {import('node:http').Server} server */
function watch(server) {
  server.on('request', (_req, res) => {
    traffic.onTheWay--
    res.once('finish', () => traffic.onTheWay++)
  })
}

/** Listens on a free port, and returns it. @param {import('node:http').Server} server @returns {Promise<number>} */
function listening(server) {
  watch(server)
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () =>
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port),
    ),
  )
}

/** Closes a server and its connections. @param {import('node:http').Server | undefined} server @returns {Promise<void>} */
function closed(server) {
  return new Promise((resolve) => {
    if (!server?.listening) return resolve()
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
