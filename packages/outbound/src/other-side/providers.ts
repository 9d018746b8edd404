import type { OutboundReply } from '../request.js'
import { REFUSALS } from './pause.js'

/** The statement of a provider's reply, in its body, about its limit. */
export interface StatedLimit {
  readonly isRefusal?: boolean
  /** Milliseconds; undefined: it does not say how long. */
  readonly pauseMs?: number | undefined
}

/** The providers whose bodies can be read. Undefined: the headers say all. */
export const PROVIDERS = {
  google: async (reply) =>
    REFUSALS.has(reply.status) ? google((await reply.json?.()) as Google) : undefined,
  shopify: async (reply) => shopify((await reply.json?.()) as Shopify),
  aws: async (reply) => (reply.status >= 400 ? aws(reply, (await reply.json?.()) as Aws) : undefined),
} satisfies Record<string, (reply: OutboundReply) => Promise<StatedLimit | undefined>>

interface Google {
  readonly error?: {
    readonly details?: readonly { readonly '@type'?: string; readonly retryDelay?: string }[]
  }
}

/** google.rpc.RetryInfo in the details of an error: https://google.aip.dev/193, `"retryDelay": "34.07s"`. */
function google(body: Google | readonly Google[] | undefined): StatedLimit | undefined {
  const { error }: Google = (Array.isArray(body) ? body[0] : body) ?? {}
  const info = error?.details?.find?.(
    (detail) => detail['@type'] === 'type.googleapis.com/google.rpc.RetryInfo',
  )
  const [, seconds] = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(String(info?.retryDelay)) ?? []
  return seconds === undefined ? undefined : { pauseMs: Number(seconds) * 1000 }
}

interface Shopify {
  readonly errors?: readonly { readonly extensions?: { readonly code?: string } }[]
  readonly extensions?: {
    readonly cost?: {
      readonly requestedQueryCost?: number
      readonly throttleStatus?: { readonly currentlyAvailable?: number; readonly restoreRate?: number }
    }
  }
}

/** THROTTLED and throttleStatus of the GraphQL Admin API: https://shopify.dev/docs/api/usage/limits. */
function shopify(body: Shopify | undefined): StatedLimit | undefined {
  const isRefusal = body?.errors?.some?.(({ extensions }) => extensions?.code === 'THROTTLED') ?? false
  const { requestedQueryCost, throttleStatus } = body?.extensions?.cost ?? {}
  const missing = Number(requestedQueryCost) - Number(throttleStatus?.currentlyAvailable)
  const pauseMs = (1000 * missing) / Number(throttleStatus?.restoreRate)
  return { isRefusal, ...(pauseMs > 0 && Number.isFinite(pauseMs) && { pauseMs }) }
}

interface Aws {
  readonly __type?: string
  readonly code?: string
}

/** Error codes of throttling, as @smithy/core lists them: https://smithy.io/2.0/aws/protocols/aws-json-1_1-protocol.html. */
function aws(reply: OutboundReply, body: Aws | undefined): StatedLimit {
  const type = String(reply.header('x-amzn-errortype') ?? body?.__type ?? body?.code)
  const code = type.split(':')[0]!.split('#').at(-1)!
  return { isRefusal: THROTTLED.has(code) }
}

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
