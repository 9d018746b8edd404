import { limited } from '@sluice/http'
import type { Handle, RequestEvent, ResolveOptions } from '@sveltejs/kit'
import { building } from '$app/environment'

/*
 * SvelteKit behind a limit: src/hooks.server.ts. The address is the one that the adapter reports: behind a proxy set
 * ADDRESS_HEADER and XFF_DEPTH of @sveltejs/adapter-node. Pages that the build prerenders have no caller, and what a load
 * function fetches from the same site (a sub-request) belongs to a request that was counted.
 */

type Resolve = (event: RequestEvent, options?: ResolveOptions) => Response | Promise<Response>

const serve = limited((_request, event: RequestEvent, resolve: Resolve) => resolve(event), {
  name: 'site',
  limit: 10,
  window: '1m',
  address: (_request, event: RequestEvent) => event.getClientAddress(),
})

export const handle: Handle = ({ event, resolve }) =>
  building || event.isSubRequest ? resolve(event) : serve(event.request, event, resolve)
