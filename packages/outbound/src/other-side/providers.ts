import type { OutboundReply } from '../request.js'
import type { RefusalKind } from '../verdict.js'
import { REFUSALS } from './pause.js'
import { waitMsIn } from './values.js'

/** The statement of a provider's reply, in its body, about its limit. */
export interface StatedLimit {
  readonly isRefusal?: RefusalKind
  /** Milliseconds; undefined: it does not say how long. */
  readonly pauseMs?: number | undefined
}

/** The providers whose bodies can be read. Undefined: the headers say all. */
export const PROVIDERS = {
  google: async (reply) =>
    REFUSALS.has(reply.status) || reply.status === 403 ? google((await reply.json?.()) as Google) : undefined,
  shopify: async (reply) => shopify((await reply.json?.()) as Shopify),
  aws: async (reply) => (reply.status >= 400 ? aws(reply, (await reply.json?.()) as Aws) : undefined),
  openai: async (reply) => (reply.status === 429 ? openai((await reply.json?.()) as OpenAi) : undefined),
} satisfies Record<string, (reply: OutboundReply) => Promise<StatedLimit | undefined>>

interface Google {
  readonly error?: {
    readonly details?: readonly { readonly '@type'?: string; readonly retryDelay?: string }[]
    readonly errors?: readonly { readonly reason?: string }[]
  }
}

/**
 * Reads an error of Google: the pause that it asks for, in its `google.rpc.RetryInfo` such as `"retryDelay": "34.07s"`, and
 * whether it is about a rate, as a 403 of the older APIs may be. The body is the error or a list of errors. See
 * https://google.aip.dev/193 and https://developers.google.com/workspace/drive/api/guides/handle-errors.
 */
function google(body: Google | readonly Google[] | undefined): StatedLimit | undefined {
  const { error }: Google = (Array.isArray(body) ? body[0] : body) ?? {}
  const info = error?.details?.find?.(
    (detail) => detail?.['@type'] === 'type.googleapis.com/google.rpc.RetryInfo',
  )
  const isRefusal = error?.errors?.some?.((cause) => OF_RATES.has(String(cause?.reason))) ?? false
  const pauseMs = waitMsIn(String(info?.retryDelay), Date.now())
  return { isRefusal, ...(pauseMs > 0 && { pauseMs }) }
}

const OF_RATES = new Set(['rateLimitExceeded', 'userRateLimitExceeded'])

interface Shopify {
  readonly errors?: readonly { readonly extensions?: { readonly code?: string } }[]
  readonly extensions?: {
    readonly cost?: {
      readonly requestedQueryCost?: number
      readonly throttleStatus?: { readonly currentlyAvailable?: number; readonly restoreRate?: number }
    }
  }
}

/**
 * Reads a reply of Shopify's GraphQL Admin API: whether it refused the query (THROTTLED), and, if the query costs more points than
 * are left, the milliseconds until enough are restored. See https://shopify.dev/docs/api/usage/limits.
 */
function shopify(body: Shopify | undefined): StatedLimit | undefined {
  const isRefusal = body?.errors?.some?.((error) => error?.extensions?.code === 'THROTTLED') ?? false
  const { requestedQueryCost, throttleStatus } = body?.extensions?.cost ?? {}
  const missing = Number(requestedQueryCost) - Number(throttleStatus?.currentlyAvailable)
  const pauseMs = (1000 * missing) / Number(throttleStatus?.restoreRate)
  return { isRefusal, ...(pauseMs > 0 && Number.isFinite(pauseMs) && { pauseMs }) }
}

interface Aws {
  readonly __type?: string
  readonly code?: string
}

/**
 * Reads an error of AWS: whether its code, in the header or the body, is one of throttling. The code may stand between a namespace
 * and a URL: `aws.x#ThrottlingException:http://...`. See https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html.
 */
function aws(reply: OutboundReply, body: Aws | undefined): StatedLimit {
  const type = String(reply.header('x-amzn-errortype') ?? body?.__type ?? body?.code)
  const code = type.split(':')[0]!.split('#').at(-1)!
  return { isRefusal: THROTTLED.has(code) }
}

interface OpenAi {
  readonly error?: { readonly code?: string; readonly type?: string }
}

/**
 * Reads a 429 of OpenAI, or of a provider that answers as it does: whether it is about money and not about a rate, so that no wait
 * cures it. See https://platform.openai.com/docs/guides/error-codes.
 */
function openai(body: OpenAi | undefined): StatedLimit | undefined {
  const { code, type } = body?.error ?? {}
  return OF_MONEY.has(String(code)) || OF_MONEY.has(String(type)) ? { isRefusal: 'final' } : undefined
}

const OF_MONEY = new Set(['insufficient_quota', 'billing_hard_limit_reached', 'billing_not_active'])

const THROTTLED = new Set([
  'BandwidthLimitExceeded',
  'EC2ThrottledException',
  'LimitExceededException',
  'PriorRequestNotComplete',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'SlowDown',
  'ThrottledException',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
  'TransactionInProgressException',
])
