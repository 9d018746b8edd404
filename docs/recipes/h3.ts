import { limitRequest, type LimitRequestOptions } from '@sluice/http'
import { H3, type Middleware } from 'h3'

/*
 * An adapter for h3 2: middleware for all routes, or for some. The address is the other end of the connection, unless
 * `trustProxy` of h3's `serve` reads it from X-Forwarded-For. h3 sets the status of a response after all middleware, so
 * there is no `shouldCharge`. A permit of a semaphore is released when the handlers have answered, before a stream that they return is read.
 */

export function rateLimit(options: Omit<LimitRequestOptions, 'shouldCharge'>): Middleware {
  const limit = limitRequest(options)
  return async function rateLimit(event, next) {
    const { denied, headers, end } = await limit(event.req, { address: event.req.ip })
    if (denied) return denied
    for (const [name, value] of headers) {
      event.res.headers.set(name, value)
      event.res.errHeaders.set(name, value) // an error is answered with these alone
    }
    try {
      return await next()
    } finally {
      end()
    }
  }
}

export const app: H3 = new H3()
  .use('/api/**', rateLimit({ name: 'api', limit: 10, window: '1m' }))
  .get('/api/hello', () => 'hello\n')
  .get('/health', () => 'ok\n')
