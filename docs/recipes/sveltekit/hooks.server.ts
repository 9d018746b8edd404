import { limited } from '@sluice/http'
import type { Handle, RequestEvent, ResolveOptions } from '@sveltejs/kit'

/*
 * SvelteKit behind a limit: src/hooks.server.ts. The address is the one that the adapter reports: behind a proxy set
 * ADDRESS_HEADER and XFF_DEPTH of @sveltejs/adapter-node.
 */

type Resolve = (event: RequestEvent, options?: ResolveOptions) => Response | Promise<Response>

const serve = limited((_request, event: RequestEvent, resolve: Resolve) => resolve(event), {
  name: 'site',
  limit: 10,
  window: '1m',
  address: (_request, event: RequestEvent) => event.getClientAddress(),
})

export const handle: Handle = ({ event, resolve }) => serve(event.request, event, resolve)
