import { limited } from '@sluice/http'

/*
 * A route of Next.js behind a limit: app/hello/route.ts. Next.js passes no address to routes, so it is read from
 * X-Forwarded-For: `trustProxy` is how many proxies append to that header. Platforms and a proxy of your own do; where callers
 * reach `next start` without one, they choose their own address.
 */

export const GET = limited(() => Response.json({ hello: 'world' }), {
  name: 'hello',
  limit: 10,
  window: '1m',
  trustProxy: 1,
  address: () => undefined,
})
