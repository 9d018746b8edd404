import { limited } from '@sluice/http'

/* Bun.serve behind a limit, by client address: `bun run bun.ts`. Handlers of `routes` are wrapped in the same way. */

/** What the handler needs of Bun's server. */
interface Server {
  requestIP(request: Request): { readonly address: string } | null
}

export default {
  fetch: limited(() => new Response('hello\n'), {
    name: 'api',
    limit: 10,
    window: '1m',
    address: (request, server: Server) => server.requestIP(request)?.address,
  }),
}
