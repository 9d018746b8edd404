import { memoryStore } from '@sluice/core'
import { FakeClock } from '@sluice/testing'
import { expectWarnings } from '@sluice/harness/warnings'
import express from 'express'
import { api, budget } from '../../recipes/budget-mails.js'
import { closeServers, serve } from './served.js'

describe('the recipe for budget mails', () => {
  afterEach(closeServers)

  /** Two processes of a fleet that share a store, and the mails that they send. */
  const open = async () => {
    expectWarnings(['STORE_FORGETS'])
    const clock = new FakeClock()
    const store = memoryStore({ clock: clock.now })
    const mails: string[][] = []
    const send = (...mail: string[]): void => void mails.push(mail)
    const fleet = [0, 1].map(() =>
      budget(store, (key) => /^user:(.*):api$/.exec(key)?.[1]?.concat('@example.com'), send),
    )
    const app = express()
    app.use(api(fleet[0]!, (req) => req.get('x-user')))
    app.get('/', (_req, res) => void res.send('served'))
    return { clock, fleet, mails, origin: await serve(app) }
  }

  it('sends one mail for each share, user and month, whichever process makes the charge', async () => {
    const { clock, fleet, mails } = await open()
    const spend = async (): Promise<void> => {
      for (let i = 0; i < 21; i++) await fleet[i % 2]!.consume('user:ann:api', { cost: 500 })
    }
    await spend()
    expect(mails.map(([to, subject]) => [to, subject])).toEqual([
      ['ann@example.com', '80 % of your calls are used'],
      ['ann@example.com', '100 % of your calls are used'],
    ])
    expect(mails[0]![2]).toMatch(/^The next month begins in \d+ days\.$/)
    clock.pass(31 * 86_400_000)
    await spend()
    expect(mails).toHaveLength(4)
  })

  it('counts callers without a user by their address, and sends them no mail', async () => {
    expectWarnings(['USER_MISSING'])
    const { fleet, mails, origin } = await open()
    await fleet[0]!.consume('ip:127.0.0.1', { cost: 7999 })
    expect((await fetch(origin)).headers.get('x-ratelimit-remaining')).toBe('2000')
    expect(mails).toEqual([])
  })

  it('has a page of what is left, which spends nothing', async () => {
    const { origin } = await open()
    const headers = { 'x-user': 'ann' }
    for (const path of ['/', '/usage', '/usage.json'])
      expect((await fetch(origin + path, { headers })).status).toBe(200)
    const usage = (await (await fetch(`${origin}/usage.json`, { headers })).json()) as object
    expect(usage).toMatchObject({ limits: [{ limiter: 'budget', policies: [{ name: 'month', used: 1 }] }] })
    const page = await (await fetch(`${origin}/usage`)).text()
    expect(page.split('\n')).toHaveLength(10)
  })
})
