import 'reflect-metadata'
import { ExecutionContextHost } from '@nestjs/core/internal'
import { createLimiter, type Limiter, memoryStore, slidingLog } from '@sluice/core'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import {
  type Call,
  RateLimitException,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitOptions,
} from '../src/index.js'
import { closeApps, serve } from './served.js'

afterEach(closeApps)

describe('a GraphQL request of 12,000 operations', () => {
  it('asks the limiter until it denies, and never again', async () => {
    const limiter = limiterOf(3)
    const decisions: boolean[] = []
    limiter.on('decision', ({ decision }) => void decisions.push(decision.allowed))
    const request = await requestOf([{ limiter }])
    const results = await Promise.all(request(8))
    expect(results.map((result) => result === true)).toEqual([true, true, true, ...Array(5).fill(false)])
    expect(results[7]).toBeInstanceOf(RateLimitException)
    expect(decisions).toEqual([true, true, true, false])
  })

  it('asks several limits until one denies, and never again', async () => {
    const [limiter, roomy] = [limiterOf(3), limiterOf(9)]
    const decisions: unknown[] = []
    roomy.on('decision', ({ charged }) => void decisions.push(charged))
    const results = await Promise.all((await requestOf([{ limiter }, { limiter: roomy }]))(12_000))
    expect(results.filter((result) => result === true)).toHaveLength(3)
    expect(results[11_999]).toBeInstanceOf(RateLimitException)
    expect(decisions).toEqual([true, true, true, false])
  })

  it.each([0, 200])('asks a remote store about at most 16 more than the %i that it admits', async (limit) => {
    const limiter = limiterOf(Math.max(1, limit))
    if (limit === 0) await limiter.block('ip:192.0.2.0', '1h')
    const decide = limiter.decide.bind(limiter)
    let asking = 0
    let most = 0
    const elsewhere = jest.spyOn(limiter, 'decide').mockImplementation(async (...call) => {
      most = Math.max(most, ++asking)
      await turn()
      asking--
      return decide(...call)
    })
    const request = await requestOf([{ limiter }])
    const results = await Promise.all(request(12_000))
    expect(results.filter((result) => result === true)).toHaveLength(limit)
    expect(results.indexOf(true)).toBe(limit === 0 ? -1 : 0)
    expect(elsewhere.mock.calls.length).toBeLessThanOrEqual(limit + 16)
    expect(most).toBe(16)
  })

  it('continues if the store fails for one operation', async () => {
    const limiter = limiterOf(99)
    const decide = limiter.decide.bind(limiter)
    let calls = 0
    jest.spyOn(limiter, 'decide').mockImplementation(async (...call) => {
      await turn()
      if (++calls === 3) throw new Error('no answer')
      return decide(...call)
    })
    const results = await Promise.all((await requestOf([{ limiter }]))(50))
    expect(results.filter((result) => result === true)).toHaveLength(49)
  })

  it('asks again for an operation of less cost if the denied cost never fits', async () => {
    const cost = ({ context }: Call) => context.getArgByIndex(1).id % 2 || 9
    const request = await requestOf([{ limiter: limiterOf(3), cost }])
    const results = await Promise.all(request(4))
    expect(results.map((result) => result === true)).toEqual([false, true, false, true])
  })

  it('is asked about again under another key', async () => {
    const key = ({ context }: Call) => (context.getArgByIndex(1).id % 2 ? 'odd' : 'even')
    const request = await requestOf([{ limiter: limiterOf(1), key }])
    const results = await Promise.all(request(4))
    expect(results.map((result) => result === true)).toEqual([true, true, false, false])
  })
})

function limiterOf(limit: number): Limiter {
  const policies = [slidingLog({ limit, window: '1m' })]
  return createLimiter({ name: 'operations', policies, store: memoryStore({ clock: () => 0 }) })
}

/** Returns a function that runs the guard for so many operations of a new request: true, or the error of each. */
async function requestOf(limits: readonly RateLimitOptions[]) {
  const { app } = await serve({ imports: [RateLimitModule.forRoot({ limits })] })
  const guard = app.get(RateLimitGuard)
  let requests = 0
  return function request(operations: number): Promise<unknown>[] {
    // Another caller each time, so that each round begins with a full allowance.
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: `192.0.2.${requests++}` })
    const req = new IncomingMessage(socket)
    const res = new ServerResponse(req)
    return Array.from({ length: operations }, async (_, id) => {
      const run = new ExecutionContextHost([undefined, { id }, { req, res }, { path: {} }], class {}, handler)
      run.setType('graphql')
      try {
        return await guard.canActivate(run)
      } catch (error) {
        return error
      }
    })
  }
}

function handler() {}
