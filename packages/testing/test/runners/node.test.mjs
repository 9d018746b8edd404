// Run by node:test, against the built packages: the fake clock is of the ES modules, and so is one of the applications.
import { installFakeClock, assertAllowed, assertDenied } from '@sluice/testing'
import { afterEach, beforeEach, test } from 'node:test'
import commonjs from './app.cjs'
import { call } from './app.mjs'

let clock
beforeEach(() => (clock = installFakeClock()))
afterEach(() => clock.restore())

for (const [kind, app] of Object.entries({ commonjs, esm: { call } })) {
  void test(`an application in ${kind} is on the fake clock`, async () => {
    assertAllowed(await app.call('k'), { remaining: 0 })
    assertDenied(await app.call('k'), { retryAfterMs: 60_000 })
    await clock.pass(60_000)
    assertAllowed(await app.call('k'))
  })
}
