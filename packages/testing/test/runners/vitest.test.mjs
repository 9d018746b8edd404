// Run by Vitest, whose fake timers leave the fake clock alone.
import { assertAllowed, assertDenied, installFakeClock } from '@sluice/testing'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import commonjs from './app.cjs'
import { call } from './app.mjs'

let clock
beforeEach(() => {
  vi.useFakeTimers()
  clock = installFakeClock()
})
afterEach(() => {
  clock.restore()
  vi.useRealTimers()
})

test.each(Object.entries({ commonjs, esm: { call } }))(
  'an application in %s is on the fake clock',
  async (_, app) => {
    assertAllowed(await app.call('k'), { remaining: 0 })
    assertDenied(await app.call('k'), { retryAfterMs: 60_000 })
    await clock.pass(60_000)
    assertAllowed(await app.call('k'))
    await expect(async () => assertDenied(await app.call('j'))).rejects.toThrow('was allowed')
  },
)
