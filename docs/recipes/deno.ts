import { limited } from '@sluice/http'

/* Deno.serve behind a limit, by client address: `deno serve deno.ts`, or `Deno.serve(handler)`. */

/** What the handler needs of Deno's connection. */
interface Info {
  readonly remoteAddr: { readonly hostname: string }
}

export default {
  fetch: limited(() => new Response('hello\n'), {
    name: 'api',
    limit: 10,
    window: '1m',
    address: (_request, info: Info) => info.remoteAddr.hostname,
  }),
}
