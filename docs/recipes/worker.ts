import { limited } from '@sluice/http'

/*
 * A Cloudflare Worker behind a limit, without a framework. The platform sets CF-Connecting-IP, and callers cannot. A memory
 * store bounds what one isolate lets through, which is good against a burst; edge.ts has the store of Durable Objects, which
 * counts over all of them, and goes here as `store`.
 */

export default {
  fetch: limited(() => new Response('hello\n'), {
    name: 'api',
    limit: 10,
    window: '1m',
    address: (request) => request.headers.get('cf-connecting-ip'),
  }),
}
