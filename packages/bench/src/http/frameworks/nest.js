// Nest on Express. Decorators are applied by hand, as this is plain JavaScript.
import 'reflect-metadata'
import { Controller, Get, HttpException, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { BODY, deny, handWritten } from '../hand-written.js'
import { HAND_WRITTEN, SLUICE } from '../modes.js'
import { inSetups, limitsOf } from '../setups.js'

/** @typedef {import('@nestjs/common').ExecutionContext} ExecutionContext */
/** @typedef {import('@nestjs/common').Provider} Provider */
/** @typedef {import('@nestjs/common').DynamicModule} DynamicModule */
/** @typedef {import('../frameworks.js').Framework} Framework */

export const title = 'Nest'
export const peer = '@nestjs/throttler'
export const mostAdded = 0.5

/** @type {Framework['contenders']} */
export const contenders = {
  bare: () => serve([], []),
  ...inSetups(HAND_WRITTEN, (setup) => (limit) => {
    const { decide, write } = handWritten(setup, limit)
    return serve(
      [],
      [
        guardWith((context) => {
          const [req, res] = httpOf(context)
          const decision = decide(req.ip ?? '')
          write(decision, res, set)
          if (decision.allowed) return true
          throw new HttpException(deny(decision, res, set), 429)
        }),
      ],
    )
  }),
  ...inSetups(SLUICE, (setup) => (limit) => {
    const limits = limitsOf(setup, limit)
    return serve([RateLimitModule.forRoot({ limits })], [{ provide: APP_GUARD, useExisting: RateLimitGuard }])
  }),
  [peer]: ({ limit, windowMs }) => serve([ThrottlerModule.forRoot([{ limit, ttl: windowMs }])], [THROTTLER]),
}

/** @param {import('express').Response} res @param {string} name @param {string} value */
const set = (res, name, value) => res.setHeader(name, value)

const THROTTLER = { provide: APP_GUARD, useClass: ThrottlerGuard }

/** @param {(context: ExecutionContext) => boolean | Promise<boolean>} canActivate */
function guardWith(canActivate) {
  return { provide: APP_GUARD, useValue: { canActivate } }
}

/**
 * @param {ExecutionContext} context
 * @returns {[import('express').Request, import('express').Response]}
 */
function httpOf(context) {
  const http = context.switchToHttp()
  return [http.getRequest(), http.getResponse()]
}

/**
 * An application with one route.
 * @param {DynamicModule[]} imports
 * @param {Provider[]} providers
 * @returns {Promise<import('node:http').Server>}
 */
export async function serve(imports, providers) {
  const app = await NestFactory.create(appModule(imports, providers), { logger: false })
  await app.init()
  return app.getHttpServer()
}

/**
 * @param {DynamicModule[]} imports
 * @param {Provider[]} providers
 */
function appModule(imports, providers) {
  class Hello {
    hello() {
      return BODY
    }
  }
  Controller()(Hello)
  Get()(
    Hello.prototype,
    'hello',
    /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(Hello.prototype, 'hello')),
  )
  class App {}
  Module({ imports, providers, controllers: [Hello] })(App)
  return App
}
