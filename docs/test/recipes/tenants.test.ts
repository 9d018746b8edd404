import { memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import { tenantLimits } from '../../recipes/tenants.js'

it('charges a tenant for the calls of a user that pass, and for no other', async () => {
  const clock = new FakeClock()
  const call = tenantLimits(memoryStore({ clock: clock.now }))
  for (let i = 0; i < 60; i++) {
    expect((await call({ tenant: 'acme', user: 'ada' })).allowed).toBe(i < 10)
  }
  const ben = await call({ tenant: 'acme', user: 'ben' })
  expect(ben.decisions.map(({ remaining }) => remaining)).toEqual([89, 9])
  const denied = await call({ tenant: 'acme', user: 'ada' })
  expect(denied.denied).toMatchObject({ limiter: 'users', retryAfterMs: 3_600_000 })
})
