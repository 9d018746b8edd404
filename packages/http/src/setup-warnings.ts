import type { Limiter } from '@sluice/core'
import { sharedInProcess } from '@sluice/core/internal'

/*
 * Set-ups that run but do not limit as intended. Each is detected while requests are served and reported once per limiter;
 * requests are never refused for it.
 */

/** Each says what happens and what to do. SETTING is the framework's setting for its proxies. */
const MESSAGES = {
  TRUST_PROXY_PERMISSIVE:
    'every proxy is trusted, so callers choose their own address: say how many proxies there are or which (SETTING)',
  FORWARDED_NOT_TRUSTED:
    'requests carry X-Forwarded-For and the proxy is not trusted, so all callers behind one proxy share a limit: trust it ' +
    '(SETTING), or a caller made it up',
  FORWARDED_IGNORED:
    'requests carry Forwarded, which frameworks do not read, so all callers behind one proxy share a limit: have the proxy send ' +
    'X-Forwarded-For, and trust it (SETTING)',
  KEY_RAW_IPV6: 'the key holds a whole IPv6 address, and a host has 2^64: use byIp() or ipKey(address)',
  LIMITER_IN_HANDLER: 'a limiter was made in a handler and starts empty for each request: make it outside',
  COUNTED_TWICE: 'one limiter counted a request twice under one key: it is mounted twice',
  NAME_TWICE: 'two limiters of this name and store counted one request: give each a name of its own',
  USER_MISSING:
    'byUser found no user, and the request is limited by address: put the limiter behind authentication',
  API_KEY_MISSING:
    'byApiKey found no API key, and the request is limited by address: refuse it before the limiter',
  ADDRESS_UNKNOWN:
    'requests have no IP address and share one limit: have the proxy send X-Forwarded-For, and trust it ' +
    '(SETTING), or choose another key',
  ANSWER_MISSING: 'onDenied has sent and returned no answer in a second',
} as const

/** The code of a warning; docs/errors.md has a section for each. */
export type SetupWarning = keyof typeof MESSAGES

/**
 * Reports a warning by its code through a limiter, which passes each code on once. `setting` is the framework's setting
 * for proxies, which the message names. A header that is not read (FORWARDED...) concerns all limiters of the process
 * alike, so where no listener takes the warning, one text with the names of all is written once for the process.
 */
export function warn(limiter: Limiter, warning: SetupWarning, setting = ''): void {
  const message = MESSAGES[warning].replace('SETTING', setting)
  const isOfAll = warning.startsWith('FORWARDED')
  limiter.warn(warning, message, isOfAll ? `limiters '${[...names].join("', '")}': ${message}` : undefined)
}

/**
 * The names of limiters of requests in this process. Bounded, as a limiter made in a handler may have a name for each
 * request.
 */
const names = sharedInProcess('request-limiters', () => new Set<string>())
const MOST_NAMES = 100

/** Notes the name of a limiter of requests, for warnings that concern all of them. */
export function addName({ name }: Limiter): void {
  if (names.size < MOST_NAMES) names.add(name)
}

let reportedInHandler = false

/**
 * Warns if `limiter` was made inside a request handler: each request would get a new limiter and count from 0. That is
 * seen from the stack trace, in which `handlerFrame` matches the framework's call of a handler. Once per process, as each
 * new limiter would warn anew.
 */
export function warnInsideHandler(limiter: Limiter, handlerFrame: RegExp): void {
  if (reportedInHandler || !handlerFrame.test(new Error().stack ?? '')) return
  reportedInHandler = true
  warn(limiter, 'LIMITER_IN_HANDLER')
}
