import { type Route, routes } from './scenario.js'
import { paint } from './table.js'
import { heading } from './words.js'

/** For every route, a line that sends enough calls to see its limit act. */
export function curlLines(origin: string): string {
  const lines = routes.map((route) => `${heading(route)}\n${statusCodes(origin, route)}`)
  const headers = `${paint('bold', 'One answer with its headers')}\n${answer(origin, routes[0]!)}`
  return [...lines, headers].join('\n\n')
}

/** curl itself counts from 1 to 25, which is more than any of the limits lets through at once. */
function statusCodes(origin: string, route: Route): string {
  const query = `${route.query === undefined ? '?' : `${route.query}&`}[1-25]`
  return `curl -so /dev/null -w '%{http_code} ' ${request(route)}'${origin}${route.path}${query}'; echo`
}

function answer(origin: string, route: Route): string {
  return `curl -i ${request(route)}'${origin}${route.path}${route.query ?? ''}'; echo`
}

function request({ method, callers }: Route): string {
  const headers = Object.entries(callers[0]?.headers ?? {}).map(([name, value]) => `-H '${name}: ${value}' `)
  return [method === 'GET' ? '' : `-X ${method} `, ...headers].join('')
}
