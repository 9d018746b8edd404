import { each, LIMITER_REPLACEMENTS, type Replacements } from '@sluice/core/internal'

const DENIAL = "it is called 'onDenied', a function that answers a denial"
const CHARGE = 'write shouldCharge: (req, res) => boolean'
const KEY = "it is called 'key'"
const SKIP = "it is called 'skip'"

/** Of adapters. docs/migrate has a page for each package with all of its options. */
export const GUARD_REPLACEMENTS: Replacements = {
  ...LIMITER_REPLACEMENTS,
  charge: "it is called 'shouldCharge'",
  reset: "it is called 'resetAs'",
  ...each(['windowMs', 'duration', 'ttl', 'timeWindow', 'interval'], "it is called 'window'"),
  ...each(['max', 'points', 'intervalCap', 'reservoir'], "it is called 'limit'"),
  ...each(['keyGenerator', 'getTracker', 'generateKey', 'id'], KEY),
  ...each(['ipv6Subnet', 'ipv6SubnetPrefix'], 'write key: byIp({ ipv6Prefix })'),
  weight: "it is called 'cost', a function of the request",
  ...each(['skipIf', 'ignoreUserAgents'], SKIP),
  ...each(['allowList', 'whitelist'], "it is called 'allow'"),
  blacklist: "it is called 'deny'",
  standardHeaders: "write headers: 'ietf', or 'draft-7' or 'draft-6'",
  enableDraftSpec: "write headers: 'draft-6'",
  legacyHeaders: "write headers: 'x-ratelimit', which is the default, or headers: false",
  ...each(['disableHeader', 'setHeaders'], 'write headers: false for none'),
  ...each(['addHeaders', 'addHeadersOnExceeding'], "write headerNames: { 'X-RateLimit-Limit': false }"),
  ...each(['handler', 'message', 'statusCode', 'status', 'throw', 'errorMessage'], DENIAL),
  errorResponseBuilder: DENIAL,
  ...each(['onLimitReached', 'onLimited', 'onExceeding', 'onBanReach'], "it is called 'onExceeded'"),
  ...each(['skipFailedRequests', 'skipSuccessfulRequests', 'requestWasSuccessful'], CHARGE),
  ...each(
    ['requestPropertyName', 'requestStorePropertyName'],
    "in Express it is called 'requestProperty'; decisionOf(request) has the decision everywhere",
  ),
  validate: 'omit it: likely mistakes are reported as warnings',
  cache: 'write store: memoryStore({ maxKeys }) and a name',
  groupId: 'share one limiter, or one hook, between the routes',
  hook: 'use rateLimitHook() in the hook of your choice',
  global: 'omit limit and window: then only routes with config.rateLimit are limited',
  throttlers: "it is called 'limits'",
  binding: 'write store',
}
