import { type Decision, PolicyError } from '@sluice/core'
import {
  createGuard,
  decisionAbout,
  type Denied,
  expressTrustsAll,
  type RequestLimitOptions,
  nodePlatform,
  overseeHeads,
  type Platform,
  refuseUncalled,
  reportedAddress,
} from '@sluice/http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { IncomingMessage } from 'node:http'

export { byApiKey, byIp, type ByIpOptions, byUser, type KeyFunction } from '@sluice/http'
export { apiKeyKey, ipKey, joinKey, userKey } from '@sluice/http'

export interface RateLimitOptions extends RequestLimitOptions<Request, Response> {
  /**
   * The property of the request that gets each decision about it, for example 'rateLimit'.
   * @default undefined: none; `decisionOf(req)` has the decision
   */
  readonly requestProperty?: string
}

/**
 * Middleware that counts each request and answers those beyond the limit with 429. With a memory store and no async
 * callback, a request passes on in the same tick. Errors go to `next`.
 * @throws {PolicyError} for options that cannot work; docs/errors.md has the codes.
 * @example
 * app.use(rateLimit({ limit: 100, window: '1m' }))
 */
export function rateLimit(options: RateLimitOptions): RequestHandler {
  const { requestProperty, ...rest } = { ...options }
  const guard = createGuard(rest, requestProperty === undefined ? express : withProperty(requestProperty))
  return function rateLimit(req: Request, res: Response, next: NextFunction): void {
    let outcome // undefined if the request may pass; a denied one has been answered already
    try {
      outcome = guard(req, res)
    } catch (error) {
      return next(error)
    }
    if (outcome === undefined) next()
    else if (!('answer' in outcome)) {
      const proceed = (denied: Denied | undefined): void => {
        if (!denied) next()
      }
      outcome.then(proceed, next)
    }
  }
}

// `app.use` looks whether it is given an application.
refuseUncalled(rateLimit, 'handle')

/**
 * The decision about a request, for example to settle it: the latest one, or that of the limiter with the given name.
 * undefined if no such limiter has counted the request.
 */
export const decisionOf: (req: Request, limiter?: string) => Decision | undefined = decisionAbout

const express: Platform<Request, Response> = {
  ...nodePlatform,
  address: reportedAddress,
  rawHeaders: (req) => Reflect.get(req, 'rawHeaders'),
  trustsAll: expressTrustsAll,
  setHeader: (res, name, value) => void Reflect.get(res, 'setHeader').call(res, name, value),
  sendResult: (res, body) => void res.send(body),
  atHead: overseeHeads,
  proxySetting: "app.set('trust proxy', 1)",
  // Layer.handleRequest in Express 5, Layer.handle [as handle_request] in Express 4.
  handlerFrame: /\bLayer\.handle/,
}

/**
 * The platform of Express, extended to write each decision to the property `name` of its request, for the option
 * `requestProperty`.
 * @throws {PolicyError} INVALID_OPTION for the name of a property that requests have already.
 */
function withProperty(name: string): Platform<Request, Response> {
  if (typeof name !== 'string' || name === '' || name in IncomingMessage.prototype || TAKEN.test(name))
    throw new PolicyError(
      'INVALID_OPTION',
      'requestProperty must be a text that names no property of requests',
    )
  return { ...express, decided: (req, decision) => void Object.assign(req, { [name]: decision }) }
}

/**
 * Properties that Node and Express 4 and 5 keep on each request and on its prototype. Many of these have only a getter: a
 * request would be charged, and then fail. A list, because Express itself is not imported.
 */
const TAKEN = RegExp(
  '^(?:url|method|socket|client|httpVersion(?:M..or)?|raw(?:Headers|Trailers)|joinDuplicateHeaders|status(?:Code|Message)|complete|' +
    'aborted|upgrade|body|params|query|route|app|res|next|baseUrl|originalUrl|ips?|host(?:name)?|subdomains|path|protocol|secure|xhr|' +
    'fresh|stale|header|get|is|param|range|accepts(?:(?:Charset|Encoding|Language)s?)?)$',
)
