import express, { type Express, type RequestHandler } from 'express'
import fc from 'fast-check'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import request from 'supertest'
import { decisionOf, ipKey, rateLimit } from '../src/index.js'
import { expectWarnings } from '@sluice/harness/warnings'

const express4 = createRequire(resolve('package.json'))('express4') as typeof express

const byAddress = (address: string): boolean => address.endsWith('.0.0.1')
const byHop = (_address: string, hop: number): boolean => hop < 2
const VALUES = [true, false, 0, 1, 2, 'loopback', '10.0.0.0/8', ['127.0.0.1', '10.0.0.0/8'], byAddress, byHop]

type Setting = (app: Express) => unknown
/** Every kind of 'trust proxy', and the function that Express makes of it set by hand, alone and beside another setting. */
const SETTINGS: readonly Setting[] = [
  () => undefined,
  ...VALUES.map(
    (value): Setting =>
      (app) =>
        app.set('trust proxy', value),
  ),
  (app) => app.set('trust proxy fn', byAddress),
  (app) => app.set('trust proxy', false).set('trust proxy fn', byHop),
  (app) => app.set('trust proxy', true).set('trust proxy fn', () => false),
]

const addresses = fc.constantFrom('203.0.113.9', '198.51.100.2', '10.0.0.1', '127.0.0.1', '2001:db8::5')

beforeEach(
  () =>
    void expectWarnings([], {
      perhaps: ['FORWARDED_NOT_TRUSTED', 'TRUST_PROXY_PERMISSIVE', 'ADDRESS_UNKNOWN'],
    }),
)

describe.each([
  ['5', express],
  ['4', express4],
])('the address of a request of Express %s', (_, createApp) => {
  it('is req.ip for every setting of proxies, also in a mounted application', async () => {
    const settings = fc.constantFrom(...SETTINGS)
    await fc.assert(
      fc.asyncProperty(
        settings,
        fc.boolean(),
        fc.array(addresses, { maxLength: 4 }),
        async (set, mounts, chain) => {
          const [outer, inner] = [createApp(), createApp()]
          set(outer)
          const counting = mounts ? inner : outer
          if (mounts) outer.use(inner)
          counting.use(rateLimit({ limit: 9, window: '1m' }), answer)
          const asked = request(outer).get('/')
          const { body } = await (chain.length > 0 ? asked.set('X-Forwarded-For', chain.join(', ')) : asked)
          expect(body.key).toBe(ipKey(body.ip))
        },
      ),
    )
  })

  it('is what the application has defined as req.ip', async () => {
    const ofOne: RequestHandler = (req, _res, next) => {
      Object.defineProperty(req, 'ip', { value: '203.0.113.7' })
      next()
    }
    const [first, second] = [createApp(), createApp()]
    first.use(ofOne, rateLimit({ limit: 9, window: '1m' }), answer)
    Object.defineProperty(second.request, 'ip', { get: () => '203.0.113.8' })
    second.use(rateLimit({ limit: 9, window: '1m' }), answer)
    const keys = [first, second].map(async (app) => (await request(app).get('/')).body.key)
    expect(await Promise.all(keys)).toEqual(['ip:203.0.113.7', 'ip:203.0.113.8'])
  })
})

const answer: RequestHandler = (req, res) => void res.json({ ip: req.ip, key: decisionOf(req)?.key })
