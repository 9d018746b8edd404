import type { Policy } from '@sluice/core'
import type { limits as exampleLimits } from '@sluice/examples/express/server.js'

/** One simulated caller, who sends at a steady rate whatever the answers are. */
export interface Caller {
  /** The key that the limiter counts by: an address, a user, the owner of an API key. */
  readonly name: string
  readonly callsPerSecond: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface Route {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly query?: string
  /** The parts that keys are made of. */
  readonly by: 'IP' | 'uid:action' | 'API key'
  readonly policies: readonly Policy[]
  /** Units that each call takes, and what they are; default 1 call. */
  readonly cost?: { readonly units: number; readonly of: string }
  /** The first one sends more than the limit, and is the one whose answers the display shows. */
  readonly callers: readonly Caller[]
}

/** On each route one caller asks for too much; callers who ask for less than the limit are never denied because of it. */
export function routesUnder(limits: typeof exampleLimits): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/public',
      by: 'IP',
      policies: limits.public,
      callers: [{ name: '127.0.0.1', callsPerSecond: 15 }],
    },
    {
      method: 'POST',
      path: '/orders',
      by: 'uid:action',
      policies: limits.orders,
      callers: [user('alice', 12), user('bob', 8), user('carol', 4)],
    },
    {
      method: 'GET',
      path: '/search',
      by: 'API key',
      policies: limits.search,
      callers: [client('acme', 20), client('globex', 6)],
    },
    {
      method: 'POST',
      path: '/login',
      by: 'uid:action',
      policies: limits.login,
      callers: [user('eve', 4), user('alice', 0.4)],
    },
    {
      method: 'POST',
      path: '/export',
      query: '?rows=20',
      by: 'API key',
      policies: limits.export,
      cost: { units: 20, of: 'rows' },
      callers: [client('acme', 8), client('globex', 2)],
    },
  ]
}

/** A caller who is known as a user, by the header x-user. */
function user(name: string, callsPerSecond: number): Caller {
  return { name, callsPerSecond, headers: { 'x-user': name } }
}

/** A caller who is known by an API key. */
function client(name: string, callsPerSecond: number): Caller {
  return { name, callsPerSecond, headers: { 'x-api-key': `${name}-key` } }
}
