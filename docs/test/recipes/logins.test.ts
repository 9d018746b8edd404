import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { memoryStore } from '@sluice/core'
import { logins } from '../../recipes/logins.js'
import { expectWarnings } from '@sluice/harness/warnings'

const MINUTE = 60_000_000

describe('the recipe for logins', () => {
  let now: number
  let server: Server
  let origin: string
  beforeEach(async () => {
    now = 1_800_000_000_000_000
    const app = express().set('trust proxy', 1)
    app.use(logins(async (_, password) => password === 'right', memoryStore({ clock: () => now })))
    server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  afterEach(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })

  let addresses = 0
  const login = async (
    user: unknown,
    password: unknown,
    address = `203.0.113.${(addresses = (addresses + 1) % 250)}`,
  ) => {
    const response = await fetch(`${origin}/login`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': address },
      body: JSON.stringify({ user, password }),
    })
    await response.arrayBuffer()
    return response
  }
  const statuses = async (times: number, ...args: Parameters<typeof login>) => {
    const seen: number[] = []
    for (let i = 0; i < times; i++) seen.push((await login(...args)).status)
    return seen
  }

  it('refuses a user after 5 failures from whatever addresses, and blocks with the third refusal', async () => {
    expect(await statuses(5, 'ann', 'wrong')).toEqual([401, 401, 401, 401, 401])
    expect(await statuses(2, 'ann', 'right')).toEqual([429, 429])
    const third = await login('ANN ', 'right')
    expect([third.status, third.headers.get('retry-after')]).toEqual([429, '900'])
    now += 15 * MINUTE
    expect(await statuses(1, 'ann', 'right')).toEqual([200])
  })

  it('blocks for longer when a user goes on', async () => {
    await statuses(8, 'ann', 'wrong')
    now += 15 * MINUTE
    expect(await statuses(5, 'ann', 'wrong')).toEqual([401, 401, 401, 401, 401])
    now += 14 * MINUTE
    const refused = await login('ann', 'wrong')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1200'])
  })

  it('forgets a user’s failures and refusals with a success, and counts none of them', async () => {
    await statuses(7, 'ann', 'wrong')
    now += 15 * MINUTE
    expect(await statuses(30, 'ann', 'right')).toEqual(Array(30).fill(200))
    expect(await statuses(5, 'ann', 'wrong')).toEqual(Array(5).fill(401))
    const refused = await login('ann', 'wrong')
    expect(refused.headers.get('retry-after')).toBe('900')
  })

  it('refuses an address after 20 failures, whose count no success of its own resets', async () => {
    for (let i = 0; i < 20; i++) {
      expect((await login(`user ${i}`, 'wrong', '198.51.100.7')).status).toBe(401)
      if (i < 19) expect((await login('mallory', 'right', '198.51.100.7')).status).toBe(200)
    }
    expect(await statuses(1, 'mallory', 'right', '198.51.100.7')).toEqual([429])
    expect(await statuses(1, 'mallory', 'right', '198.51.100.8')).toEqual([200])
  })

  it.each([
    [undefined, 'right'],
    ['', 'right'],
    [7, 'right'],
    ['ann', undefined],
    ['ann', ['right']],
  ])('takes %j with %j for a failure', async (user, password) => {
    expectWarnings(user === 'ann' ? [] : ['USER_MISSING'])
    expect(await statuses(1, user, password)).toEqual([401])
  })
})
