import { paint } from './terminal/paint.js'
import type { Route } from './routes.js'
import { heading } from './words.js'

/** For every route, a command that sends enough calls to see its limit act. */
export function curlLines(origin: string, routes: readonly Route[]): string {
  const commands = routes.map((route) => `${heading(route)}\n${statusCodes(origin, route)}`)
  const headers = `${paint('bold', 'One answer with its headers')}\n${answer(origin, routes[0]!)}`
  return [...commands, headers].join('\n\n')
}

/**
 * The command that sends 25 requests to a route and prints their status codes. curl counts `[1-25]` in the address itself; 25 is more
 * than any of the limits lets through at once.
 */
function statusCodes(origin: string, route: Route): string {
  const query = `${route.query === undefined ? '?' : `${route.query}&`}[1-25]`
  return `curl -so /dev/null -w '%{http_code} ' ${request(route)}\\\n  '${origin}${route.path}${query}'; echo`
}

/** The command that sends one request to a route and prints the answer with its headers. */
function answer(origin: string, route: Route): string {
  return `curl -i ${request(route)}'${origin}${route.path}${route.query ?? ''}'; echo`
}

/** The options of curl for a request to a route: the method, and the headers by which the server knows the first caller. */
function request({ method, callers }: Route): string {
  const headers = Object.entries(callers[0]?.headers ?? {}).map(([name, value]) => `-H '${name}: ${value}' `)
  return [method === 'GET' ? '' : `-X ${method} `, ...headers].join('')
}
