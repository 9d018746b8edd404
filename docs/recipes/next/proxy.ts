import { limitRequest } from '@sluice/http'
import { type NextRequest, NextResponse } from 'next/server'

/*
 * The proxy of Next.js behind a limit: proxy.ts, beside app/. It counts what `matcher` names, pages and server actions too, before
 * anything of them runs. It sees no response, so `shouldCharge` is for routes.
 */

const limit = limitRequest({ name: 'site', limit: 10, window: '1m', trustProxy: 1 })

export async function proxy(request: NextRequest): Promise<Response> {
  const { denied, headers } = await limit(request, { address: undefined })
  if (denied) return denied
  const response = NextResponse.next()
  headers.forEach((value, name) => response.headers.set(name, value))
  return response
}

export const config = { matcher: '/api/:path*' }
