import type { Policy } from '@sluice/core'
import { paint } from './terminal/paint.js'
import type { Route } from './routes.js'

/** The name of a route: `POST /orders`. */
export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`
}

/** Policies as the display shows them: `5 per 1s, burst 10`, or `1 per 1s + 5 per 10s` for two. `unit` is what is counted: `40 rows per 1s`. */
export function policiesInWords(policies: readonly Policy[], unit = ''): string {
  return policies
    .map(({ limit, windowMs, capacity }) => {
      const rate = `${limit}${unit && ` ${unit}`} per ${windowMs / 1000}s`
      return capacity === limit ? rate : `${rate}, burst ${capacity}`
    })
    .join(' + ')
}

/** The limit of a route, and by what it is counted: `5 per 1s, burst 10, by uid:action`. */
export function limitInWords({ policies, by, cost }: Route): string {
  return `${policiesInWords(policies, cost?.of)}, by ${by}`
}

/** The heading of a route, with its algorithms: `POST /orders  5 per 1s, burst 10, by uid:action (token bucket)`. */
export function heading(route: Route): string {
  const algorithms = new Set(route.policies.map(({ algorithm }) => algorithm.name.replaceAll('-', ' ')))
  const names = paint('dim', `(${[...algorithms].join(' + ')})`)
  return `${paint('bold', nameOf(route))}  ${limitInWords(route)} ${names}`
}
