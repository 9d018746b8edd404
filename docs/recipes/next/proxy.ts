import { limitRequest } from '@sluice/http'
import { type NextRequest, NextResponse } from 'next/server'

/*
 * The proxy of Next.js behind a limit: proxy.ts, beside app/. It counts what `matcher` names, pages and server actions too, before
 * anything of them runs. It sees no response, so `shouldCharge` is for routes, and `headers: false` leaves the headers to routes that have
 * limits of their own: Next.js would send both sets, and a route's 429 would say what is left of the proxy's limit.
 */

const limit = limitRequest({ name: 'site', limit: 10, window: '1m', trustProxy: 1, headers: false })

export async function proxy(request: NextRequest): Promise<Response> {
  const { denied } = await limit(request, { address: undefined })
  return denied ?? NextResponse.next()
}

export const config = { matcher: '/api/:path*' }
