import type { Limiter } from '@sluice/core'
import { inCommon } from '@sluice/core/internal'

/*
 * Set-ups that run but do not limit as intended. Each is detected while requests are served and reported once per limiter;
 * requests are never refused for it.
 */

export const SETTINGS =
  "Express: app.set('trust proxy', 1); Koa: new Koa({ proxy: true, maxIpsCount: 1 }); Fastify: " +
  "Fastify({ trustProxy: ['10.0.0.0/8'] }), the proxies' addresses; Nest: as its platform; Hono, limited and limitRequest: " +
  'the option trustProxy: 1'

const MESSAGES = {
  TRUST_PROXY_PERMISSIVE:
    'every proxy is trusted, so callers choose their own address in X-Forwarded-For and no limit by address holds: say how many ' +
    `proxies there are or which (${SETTINGS})`,
  FORWARDED_NOT_TRUSTED:
    'requests carry X-Forwarded-For but no proxy is trusted, so all callers behind one proxy share its address and its limit: say ' +
    `how many proxies there are (${SETTINGS}); where there is none a caller made the header up, and nothing is wrong`,
  FORWARDED_IGNORED:
    'requests carry Forwarded and no X-Forwarded-For, the one header that frameworks read, so all callers behind one proxy share ' +
    `its address and its limit: have the proxy send X-Forwarded-For, and trust it (${SETTINGS}); where there is none a caller ` +
    'made the header up, and nothing is wrong',
  KEY_RAW_IPV6:
    'the key holds a whole IPv6 address, and one host has 2^64 of them, each with an allowance of its own: use byIp(), or ' +
    'ipKey(address), which count by the /64',
  LIMITER_IN_HANDLER:
    'a limiter was made while a request was handled, so it starts empty for each and never denies: make it once, where the routes ' +
    'are set up',
  COUNTED_TWICE:
    'one limiter counted a request twice under one key, so callers get half of the limit: the middleware is mounted twice on the ' +
    'way to this route',
  NAME_TWICE:
    'two limiters of this name in one store counted one request: where their policies have the same algorithms and windows they ' +
    'share what was consumed, and in headers and decisionOf one hides the other: give each a name of its own',
  USER_MISSING:
    'byUser found no user on a request and limits it by address: put the limiter behind authentication, or keep this when ' +
    'anonymous requests are meant to come in',
  API_KEY_MISSING:
    'byApiKey found no API key on a request and limits it by address: refuse such requests before the limiter, or keep this when ' +
    'they are meant to come in',
  ADDRESS_UNKNOWN:
    'neither the framework nor the socket gives an IP address (a Unix socket?), so all such callers share one limit: have the ' +
    `proxy send X-Forwarded-For and trust it (${SETTINGS}), or choose another key`,
} as const

/** The code of a warning; docs/errors.md has a section for each. */
export type SetupWarning = keyof typeof MESSAGES

/**
 * Reports a warning by its code, once for each limiter. One about a proxy is of all limiters of the process: without listeners it
 * is written once, with their names.
 */
export function warn(limiter: Limiter, warning: SetupWarning): void {
  const message = MESSAGES[warning]
  limiter.warn(
    warning,
    message,
    warning.startsWith('FORWARDED') ? `limiters ${allNames()}: ${message}` : undefined,
  )
}

/** The names of limiters of requests in this process. Bounded, as a limiter made in a handler may have a name for each request. */
const names = inCommon('request-limiters', () => new Set<string>())
const MOST_NAMES = 100

export function addName({ name }: Limiter): void {
  if (names.size < MOST_NAMES) names.add(name)
}

function allNames(): string {
  return [...names].map((name) => `'${name}'`).join(', ')
}

let reportedInHandler = false

/**
 * Warns if a limiter is made inside a request handler, as the stack trace shows: each request would get a new one and
 * count from 0. Once per process, because a new limiter has not warned yet.
 */
export function warnInsideHandler(limiter: Limiter, handlerFrame: RegExp): void {
  if (reportedInHandler || !handlerFrame.test(new Error().stack ?? '')) return
  reportedInHandler = true
  warn(limiter, 'LIMITER_IN_HANDLER')
}
