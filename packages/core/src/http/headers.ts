import type { Decision } from '../limiter/decision.js'
import type { Counted } from './counted.js'
import { writeIetfDraft11 } from './ietf-draft-11.js'
import { invalidOption } from './invalid-option.js'
import type { SetHeader } from './platform.js'
import { wholeSeconds } from './seconds.js'
import { writeXRateLimit } from './x-ratelimit.js'

/** A set of headers that tells clients how they stand. 'ietf' is the newest draft that is supported. */
export type HeaderFormat = 'x-ratelimit' | 'ietf'

export interface HeaderOptions {
  /** On every response, allowed or denied; default 'x-ratelimit'. false leaves only Retry-After on denials. */
  readonly headers?: HeaderFormat | readonly HeaderFormat[] | false
  /** X-RateLimit-Reset in seconds since 1970 ('epoch', default) or from now ('delta'). */
  readonly resetAs?: 'epoch' | 'delta'
}

/** Writes the headers of all limiters that have counted a request. */
export type WriteHeaders = (all: readonly Counted[], set: SetHeader) => void

/**
 * What writes the headers that `options` ask for; undefined where they want none.
 * @throws {PolicyError} INVALID_OPTION for a format that is not known.
 */
export function headerWriter(options: HeaderOptions): WriteHeaders | undefined {
  const { headers = 'x-ratelimit', resetAs = 'epoch' } = options
  if (resetAs !== 'epoch' && resetAs !== 'delta')
    throw invalidOption("resetAs must be 'epoch' or 'delta'", resetAs)
  const formats = headers === false ? [] : Array.isArray(headers) ? headers : [headers]
  if (!formats.every((format) => format === 'x-ratelimit' || format === 'ietf')) {
    throw invalidOption("headers must be 'x-ratelimit', 'ietf', both or false", headers)
  }
  const xRateLimit = formats.includes('x-ratelimit')
  const ietf = formats.includes('ietf')
  if (!xRateLimit && !ietf) return undefined
  return function writeHeaders(all, set) {
    const announced = all.length === 1 ? all : all.filter((counted) => counted.announced)
    if (xRateLimit) writeXRateLimit(announced, resetAs, set)
    if (ietf) writeIetfDraft11(announced, set)
  }
}

/**
 * Retry-After of a denial, in seconds; undefined where it has no end. Never 0, which many clients take for "at once",
 * and never before the `t` of a policy that refuses.
 */
export function retryAfterSeconds(decision: Decision): number | undefined {
  const seconds = Math.max(1, wholeSeconds(decision.retryAfterMs))
  return Number.isFinite(seconds) ? seconds : undefined
}
