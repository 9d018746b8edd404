import express, { type ErrorRequestHandler, type Request, type RequestHandler, type Response } from 'express'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { type Adapter, listening, type Route } from '@sluice/harness/adapters'
import { rateLimit } from '../src/index.js'

/** Version 4 under an alias; the types are those of version 5, which this uses nothing new of. */
const express4 = createRequire(resolve('package.json'))('express4') as typeof express

export const adapters = [adapterOf('Express 5', express), adapterOf('Express 4', express4)]

function adapterOf(name: string, createApp: typeof express): Adapter<Request, Response> {
  return {
    name,
    serve({ routes, proxyTrust, before, onError }) {
      const app = createApp()
      if (proxyTrust !== 'none') app.set('trust proxy', proxyTrust === 'all' ? true : proxyTrust)
      if (before) {
        app.use(async (_req, _res, next) => {
          await before()
          next()
        })
      }
      for (const route of routes) app.all(route.path, ...route.limits.map(rateLimit), handlerOf(route))
      const fail: ErrorRequestHandler = (error, _req, res, next) => {
        onError(error)
        if (res.headersSent) next(error)
        else res.sendStatus(500)
      }
      return listening(app.use(fail).listen(0, '127.0.0.1'))
    },
    header: (req, name) => req.get(name),
    method: (req) => req.method,
    status: (res) => res.statusCode,
    answerDenial: (_req, res, text) => res.type('text').send(text),
    lacks: { 'HTTP/2': 'Express has no HTTP/2' },
  }
}

/** Version 4 does not wait for a handler, so that errors have to be handed on. */
function handlerOf({ answer }: Route<Request, Response>): RequestHandler {
  return async (_req, res, next) => {
    try {
      const { status = 200, headers = {}, body } = await answer()
      res.status(status).set(headers).type('text')
      if (typeof body === 'string') res.send(body)
      else await pipeline(Readable.from(body), res)
    } catch (error) {
      next(error)
    }
  }
}
