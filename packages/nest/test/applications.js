// The template of Nest's e2e tests: one AppModule, and for each test an application of it, which is closed after the test. Two
// tests, then a call of a queue on the store. A process of its own, on the build, to see that it ends. Arguments: whether the
// store is handed in or made by the module, and the URL of Redis, or none for memory.
import 'reflect-metadata'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { Test } from '@nestjs/testing'
import { createLimiter, memoryStore, slidingLog } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { RateLimitGuard, RateLimitModule } from '@sluice/nest'
import { createQueue } from '@sluice/outbound'
import request from 'supertest'

const [given, url] = process.argv.slice(2)
const storeOf = () => (url ? redisStore(url) : memoryStore())
const store = storeOf()

class AppController {
  getHello() {
    return 'Hello World!'
  }
}
const { prototype } = AppController
Get()(
  prototype,
  'getHello',
  /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(prototype, 'getHello')),
)
Controller()(AppController)

class AppModule {}
const limits = [{ name: 'e2e', limit: 1, window: '1h' }]
Module({
  imports: [RateLimitModule.forRoot({ store: given === 'handed in' ? store : storeOf, limits })],
  controllers: [AppController],
  providers: [{ provide: APP_GUARD, useClass: RateLimitGuard }],
})(AppModule)

const statuses = []
for (let test = 0; test < 2; test++) {
  const moduleFixture = await Test.createTestingModule({ imports: [AppModule] }).compile()
  const app = moduleFixture.createNestApplication()
  await app.init()
  statuses.push((await request(app.getHttpServer()).get('/')).status)
  await app.close()
}
const limiter = createLimiter({ name: 'calls', policies: [slidingLog({ limit: 9, window: '1m' })], store })
const queue = createQueue({ limiter, key: 'k' })
const outbound = await queue.run(() => 'sent').catch((error) => String(error))
console.log(JSON.stringify({ statuses, outbound }))
