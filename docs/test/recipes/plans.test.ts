import { memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import express from 'express'
import { type Plan, planLimits, PLANS } from '../../recipes/plans.js'
import { closeServers, serve } from './served.js'
import { expectWarnings } from '@sluice/harness/warnings'

describe('the recipe for plans', () => {
  let clock: FakeClock
  let plans: Map<string, Plan>
  let origin: string
  beforeEach(async () => {
    clock = new FakeClock()
    plans = new Map([
      ['acme', { perMinute: 3, perDay: 5 }],
      ['globex', { perMinute: 3, perDay: 5 }],
    ])
    const app = express()
    const store = memoryStore({ clock: clock.now })
    app.use(
      planLimits(
        (req) => req.get('x-tenant'),
        (tenant) => plans.get(tenant) ?? PLANS['free']!,
        store,
      ),
    )
    app.get('/', (_req, res) => void res.send('served'))
    origin = await serve(app)
  })
  afterEach(closeServers)

  const get = async (tenant?: string) => {
    const response = await fetch(origin, { headers: tenant === undefined ? {} : { 'x-tenant': tenant } })
    return { status: response.status, headers: response.headers, body: await response.text() }
  }
  const statuses = async (times: number, tenant?: string) => {
    const seen = []
    for (let i = 0; i < times; i++) seen.push((await get(tenant)).status)
    return seen
  }

  it('holds each tenant to its own plan, by the minute and by the day', async () => {
    expect(await statuses(4, 'acme')).toEqual([200, 200, 200, 429])
    expect(await statuses(1, 'globex')).toEqual([200])
    clock.pass(60_000)
    expect(await statuses(3, 'acme')).toEqual([200, 200, 429])
    expect(JSON.parse((await get('acme')).body)).toMatchObject({ error: 'over the limit of your plan' })
  })

  it('raises and lowers a plan from the next request on, and gives nothing for moving to and fro', async () => {
    await statuses(3, 'acme')
    plans.set('acme', { perMinute: 5, perDay: 5 })
    expect(await statuses(3, 'acme')).toEqual([200, 200, 429])
    plans.set('acme', { perMinute: 3, perDay: 5 })
    expect(await statuses(1, 'acme')).toEqual([429])
    plans.set('acme', { perMinute: 100, perDay: 1000 })
    expect((await get('acme')).headers.get('x-ratelimit-remaining')).toBe('94')
  })

  it('suspends a tenant with a limit of 0, without a time to come back, until it is raised', async () => {
    plans.set('acme', PLANS['suspended']!)
    const { status, headers, body } = await get('acme')
    expect([status, headers.get('retry-after'), JSON.parse(body)]).toEqual([
      429,
      null,
      { error: 'this account is suspended' },
    ])
    plans.set('acme', { perMinute: 3, perDay: 5 })
    expect(await statuses(4, 'acme')).toEqual([200, 200, 200, 429])
  })

  it('counts requests without a tenant by address, under the free plan', async () => {
    expectWarnings(['USER_MISSING'])
    expect((await get()).headers.get('x-ratelimit-limit')).toBe(String(PLANS['free']!.perMinute))
  })
})
