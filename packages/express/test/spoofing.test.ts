import { createLimiter, slidingLog } from '@sluice/core'
import express, { type Express, type Request } from 'express'
import request from 'supertest'
import { rateLimit } from '../src/index.js'
import { appWith } from './served.js'

/** How a caller may write who sent it on. */
const VARIANTS = Array.from({ length: 4 }, (_, i) => [
  `198.51.100.${i}`,
  `198.51.100.${i}, 203.0.113.9`,
  `::ffff:198.51.100.${i}`,
  `198.51.100.7:${50_000 + i}`,
  `[2001:db8:${i}::1]:443`,
  `2001:db8:${i}::1%eth0`,
  `unknown-${i}`,
  `"198.51.100.${i}"`,
]).flat()

let warnings: string[]

beforeEach(() => (warnings = []))

describe('a caller that makes X-Forwarded-For up', () => {
  it.each([
    ['left at its default', undefined],
    ['false', false],
    ['0', 0],
    ['1, with a proxy in front', 1],
    ['a list, with a proxy in front', ['loopback', '10.0.0.0/8']],
  ])('gets its limit and no more where trust proxy is %s', async (_, setting) => {
    const app = limitedTo(5, setting)
    // What a proxy does: it appends the address that it sees.
    const seen = setting ? ', 192.0.2.66' : ''
    expect(await admitted(app, (i) => ({ 'X-Forwarded-For': VARIANTS[i]! + seen }))).toBe(5)
  })

  it('escapes where trust proxy is true, which is reported once', async () => {
    const app = limitedTo(5, true)
    expect(await admitted(app, (i) => ({ 'X-Forwarded-For': VARIANTS[i]! }))).toBeGreaterThan(5)
    expect(warnings).toEqual(['TRUST_PROXY_PERMISSIVE'])
  })

  it('cannot become another caller by a port where its proxy forwards one', async () => {
    const app = limitedTo(5, 1)
    expect(await admitted(app, (i) => ({ 'X-Forwarded-For': `192.0.2.66:${50_000 + i}` }))).toBe(5)
  })

  it.each(['Forwarded', 'X-Real-IP', 'X-Client-IP', 'CF-Connecting-IP', 'True-Client-IP'])(
    'gains nothing from %s',
    async (name) => {
      expect(await admitted(limitedTo(5), (i) => ({ [name]: `198.51.100.${i}` }))).toBe(5)
    },
  )

  it.each([
    '/login',
    '/LOGIN',
    '/login/',
    '//login',
    '/login?a=1',
    '/%6cogin',
    '/./login',
    '/login;x',
    '/login#x',
  ])('does not reach a limited route again by writing its path as %s', async (path) => {
    const app = express().get(
      '/login',
      rateLimit({ limit: 1, window: '1d' }),
      (_req, res) => void res.send('in'),
    )
    await request(app).get('/login')
    expect((await request(app).get(path)).text).not.toBe('in')
  })
})

describe('the proxy setting', () => {
  it('is reported once where X-Forwarded-For comes in and no proxy is trusted', async () => {
    await admitted(limitedTo(5), () => ({ 'X-Forwarded-For': '198.51.100.1' }))
    expect(warnings).toEqual(['FORWARDED_NOT_TRUSTED'])
  })

  it.each([
    ['1', 1],
    ['a list', ['loopback']],
    ['a function', () => true],
  ])('is not reported where trust proxy is %s', async (_, setting) => {
    await admitted(limitedTo(5, setting), () => ({ 'X-Forwarded-For': '198.51.100.1' }))
    expect(warnings).toEqual([])
  })

  it('is not reported where nothing was forwarded', async () => {
    await admitted(limitedTo(5), () => ({}))
    expect(warnings).toEqual([])
  })

  it('tells callers apart that come through one trusted proxy', async () => {
    const app = limitedTo(1, 1)
    await request(app).get('/').set('X-Forwarded-For', '198.51.100.1')
    expect((await request(app).get('/').set('X-Forwarded-For', '198.51.100.2')).status).toBe(200)
  })
})

describe('a limiter', () => {
  it('is reported when it is made for each request', async () => {
    const emitWarning = jest.spyOn(process, 'emitWarning').mockReturnValue()
    const app = appWith((app) => {
      app.use((req: Request, res, next) => rateLimit({ limit: 1, window: '1m' })(req, res, next))
    })
    for (let i = 0; i < 3; i++) await request(app).get('/')
    expect(emitWarning.mock.calls.map(([, details]) => details)).toEqual([
      expect.objectContaining({ code: 'LIMITER_IN_HANDLER' }),
    ])
    emitWarning.mockRestore()
  })

  it('is reported when it is mounted twice on the way to a route', async () => {
    const limiter = listened(9)
    const app = appWith((app) => app.use(rateLimit({ limiter })).get('/', rateLimit({ limiter })))
    await request(app).get('/')
    expect(warnings).toEqual(['COUNTED_TWICE'])
  })
})

function limitedTo(limit: number, trustProxy?: unknown): Express {
  return appWith((app) => {
    if (trustProxy !== undefined) app.set('trust proxy', trustProxy)
    app.use(rateLimit({ limiter: listened(limit) }))
  })
}

function listened(limit: number) {
  const limiter = createLimiter({ policies: [slidingLog({ limit, window: '1d' })] })
  limiter.on('warning', ({ code }) => void warnings.push(code))
  return limiter
}

/** How many of 32 requests of one caller are served. */
async function admitted(app: Express, headers: (i: number) => Record<string, string>): Promise<number> {
  let served = 0
  for (let i = 0; i < VARIANTS.length; i++) {
    const { status } = await request(app).get('/').set(headers(i))
    if (status === 200) served++
  }
  return served
}
