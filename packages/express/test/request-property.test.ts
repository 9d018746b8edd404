import express from 'express'
import request from 'supertest'
import { rateLimit } from '../src/index.js'

describe('requestProperty', () => {
  it('has the latest decision, of an allowed and of a denied request', async () => {
    const seen: unknown[] = []
    const onDenied = (req: object, res: { end(): void }) => {
      seen.push((req as { limits?: unknown }).limits)
      res.end()
    }
    const app = express()
    app.use(rateLimit({ limit: 1, window: '1m', requestProperty: 'limits', onDenied }))
    app.use((req, res) => {
      seen.push((req as { limits?: unknown }).limits)
      res.end()
    })
    for (let i = 0; i < 2; i++) await request(app).get('/')
    expect(seen).toMatchObject([
      { allowed: true, limit: 1, remaining: 0 },
      { allowed: false, limit: 1, remaining: 0 },
    ])
  })

  it.each([[''], ['headers'], ['socket'], ['rawHeaders'], ['originalUrl'], [true], [null]])(
    'cannot be %p',
    (requestProperty) => expect(() => limitWith(requestProperty)).toThrow(refusal),
  )

  it.each([
    [5, express.request],
    [4, (require('express4') as typeof express).request],
  ])('cannot be what requests of Express %i have', (_, requests) => {
    const names = Object.getOwnPropertyNames(requests)
    expect(names).toEqual(expect.arrayContaining(['ip', 'host', 'path', 'xhr', 'get']))
    for (const name of names) expect(() => limitWith(name)).toThrow(refusal)
  })
})

const refusal = expect.objectContaining({
  code: 'INVALID_OPTION',
  message: 'requestProperty must be a text that names no property of requests',
})

function limitWith(requestProperty: unknown) {
  return rateLimit({ limit: 1, window: '1m', requestProperty: requestProperty as string })
}
