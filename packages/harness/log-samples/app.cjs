// An application that answers /limited with 429 and fails at /fails, with the logger that its first argument names; its port is the second.
const [, , logger, port] = process.argv
const express = require('express')

/** The handlers of an application on Express, behind what logs. */
function routes(app, ...handlers) {
  app.use(...handlers)
  app.get('/limited', (_, res) => res.status(429).send('slow down'))
  app.get('/fails', () => {
    throw new Error('as it may')
  })
  app.get('/{*rest}', (req, res) => {
    req.log?.info('looking it up')
    req.log?.info({ found: 3 }, 'found')
    res.send('hello')
  })
  app.use((error, _req, res, _next) => void res.status(500).send(error.message))
  app.listen(Number(port), '0.0.0.0')
}

const LOGGERS = {
  'pino-http': () => routes(express(), require('pino-http')()),
  bunyan() {
    const log = require('bunyan').createLogger({
      name: 'shop',
      serializers: require('bunyan').stdSerializers,
    })
    routes(express(), (req, res, next) => {
      res.on('finish', () =>
        log.info({ req, res, remoteAddress: req.socket.remoteAddress }, 'request finished'),
      )
      next()
    })
  },
  winston() {
    const winston = require('winston')
    const format = winston.format.combine(winston.format.timestamp(), winston.format.json())
    const options = {
      transports: [new winston.transports.Console()],
      format,
      requestWhitelist: ['method', 'url', 'headers', 'ip'],
    }
    routes(express(), require('express-winston').logger(options))
  },
  'morgan-in-pino'() {
    const log = require('pino')()
    routes(
      express(),
      require('morgan')('combined', { stream: { write: (line) => log.info(line.trimEnd()) } }),
    )
  },
  fastify() {
    const app = require('fastify')({ logger: true })
    app.get('/limited', (_, reply) => reply.code(429).send('slow down'))
    app.get('/fails', async () => {
      throw new Error('as it may')
    })
    app.get('/*', async () => 'hello')
    app.listen({ port: Number(port), host: '0.0.0.0' }).catch((error) => console.error(error))
  },
}
const form = /^morgan-(combined|common|dev|short|tiny)$/.exec(logger)?.[1]
if (form) routes(express(), require('morgan')(form))
else LOGGERS[logger]()
