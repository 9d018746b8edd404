// The same by node:test, where the fake clock is of the CommonJS build.
const { installFakeClock, assertAllowed, assertDenied } = require('@sluice/testing')
const { test } = require('node:test')

for (const file of ['./app.cjs', './app.mjs']) {
  void test(`an application in ${file} is on the fake clock`, async () => {
    const { call } = await import(file).then((app) => app.default ?? app)
    const clock = installFakeClock()
    assertAllowed(await call('k'), { remaining: 0 })
    assertDenied(await call('k'), { retryAfterMs: 60_000 })
    await clock.pass(60_000)
    assertAllowed(await call('k'))
    clock.restore()
  })
}
