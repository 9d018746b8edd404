import { memoryStore } from '@sluice/core'
import { limited } from '@sluice/http'
import { limitsFrom, parseBy, parseWhere } from '../src/index.js'

/** Whether a call with this part fulfils a condition on it. */
const holds = (where: string, part: string, value?: string): boolean =>
  parseWhere(where).matches((name) => (name === part ? value : undefined))

describe('a condition on the host', () => {
  it.each([
    'api.example.com',
    'API.example.com',
    'api.example.com:443',
    'api.example.com.',
    'Api.Example.com.:80',
  ])('is about one host, however the caller writes it: %s', (host) => {
    const conditions = ['host=api.example.com', 'host=API.Example.com.', 'host^=api.', 'host$=.example.com']
    expect(conditions.filter((where) => !holds(where, 'host', host))).toEqual([])
    expect(holds('host!=api.example.com', 'host', host)).toBe(false)
  })

  it('keeps addresses of IPv6, in brackets', () => {
    expect(holds('host=[2001:DB8::1]', 'host', '[2001:db8::1]:8080')).toBe(true)
  })

  it.each(['host=localhost:3000', 'host$=.example:80', 'host=[::1]:80'])(
    'that names a port is refused, as it could never hold: %s',
    (where) => expect(() => parseWhere(where)).toThrow(/a host is compared without its port: write 'host/),
  )

  it('acts in an application, where a Request may have no Host', async () => {
    const policies = [{ algorithm: 'slidingLog', limit: 1, window: '1h' } as const]
    const limits = limitsFrom<Request>({ limiters: { api: { policies, where: 'host=api.example.com' } } })
    const handler = limited(() => new Response('ok'), {
      limits,
      store: memoryStore(),
      address: () => '192.0.2.1',
    })
    const statusOf = async (url: string, host?: string) =>
      (await handler(new Request(url, { headers: host === undefined ? {} : { host } }))).status
    expect(await statusOf('http://api.example.com/')).toBe(200)
    expect(await statusOf('http://10.0.0.1/', 'API.example.com:443')).toBe(429)
    expect(await statusOf('http://other.example/')).toBe(200)
  })
})

describe('space in a text', () => {
  it('around names and values is left out', () => {
    const where = parseWhere(' path = /login , method = POST ')
    const call: Record<string, string> = { path: '/login', method: 'POST' }
    expect(where.matches((part) => call[part])).toBe(true)
  })

  it.each(['header: x-api-key', 'header:x api', 'header:x:y', 'header:'])(
    'that makes no name of a header is refused: %s',
    (by) => {
      expect(() => parseBy(by)).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
      expect(() => parseWhere(`${by}=a`)).toThrow(expect.objectContaining({ code: 'INVALID_KEY' }))
    },
  )

  it('that was a slip is answered with the name that was meant', () => {
    expect(() => parseBy('header: x-api-key')).toThrow("did you mean 'header:x-api-key'?")
    expect(() => parseBy('header:x:y')).toThrow(/'field:PATH', got/)
  })
})
