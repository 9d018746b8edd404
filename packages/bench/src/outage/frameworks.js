// Servers of each framework, on a free port of loopback, with one route behind a limit.
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import express from 'express'
import Koa from 'koa'
import { once } from 'node:events'

const HOST = '127.0.0.1'
const BODY = 'hello'

/** @param {import('express').RequestHandler} middleware */
export function onExpress(middleware) {
  const app = express()
  app.use(middleware)
  app.get('/', (_req, res) => void res.send(BODY))
  return listening(app.listen(0, HOST))
}

/** @param {import('koa').Middleware} middleware */
export function onKoa(middleware) {
  const app = new Koa()
  app.use(middleware)
  app.use((ctx) => void (ctx.body = BODY))
  return listening(app.listen(0, HOST))
}

/**
 * @param {NonNullable<import('@nestjs/common').ModuleMetadata['imports']>} imports
 * @param {import('@nestjs/common').Type} useClass
 * @returns {Promise<import('node:http').Server>}
 */
export async function onNest(imports, useClass) {
  // Decorators by hand: plain Node has none.
  class Routes {
    get() {
      return BODY
    }
  }
  const descriptor = /** @type {PropertyDescriptor} */ (
    Object.getOwnPropertyDescriptor(Routes.prototype, 'get')
  )
  Get()(Routes.prototype, 'get', descriptor)
  Controller()(Routes)
  class App {}
  Module({ imports, controllers: [Routes], providers: [{ provide: APP_GUARD, useClass }] })(App)
  const app = await NestFactory.create(App, { logger: false })
  await app.listen(0, HOST)
  return app.getHttpServer()
}

/** @param {import('node:http').Server} server */
async function listening(server) {
  if (!server.listening) await once(server, 'listening')
  return server
}
