import type { Decision, Limiter } from '@sluice/core'
import { createGuard, type HeaderFormat, type Platform } from '@sluice/http'
import { START_MS } from './limits.js'

/** One answer as clients get it: the headers of a format, or the body of a denial. */
export interface Response {
  readonly status: number
  readonly formats: readonly { readonly format: HeaderFormat; readonly headers: readonly string[] }[]
  readonly body: string | undefined
}

const FORMATS = ['x-ratelimit', 'ietf', 'draft-7', 'draft-6'] as const

/** The response about a decision at an instant, written by the guard that all adapters share. */
export function responseOf(decision: Decision, atMs: number): Response {
  const answers = FORMATS.map((format) => ({ format, ...answered(decision, atMs, format) }))
  const { status, body } = answers[0]!
  return { status, formats: answers.map(({ format, headers }) => ({ format, headers })), body }
}

interface Answer {
  status: number
  readonly headers: string[]
  body: string | undefined
}

function answered(decision: Decision, atMs: number, headers: HeaderFormat): Answer {
  const limiter = { name: decision.limiter, decide: () => decision } as unknown as Limiter
  const guard = createGuard<object, Answer>({ limiter, key: () => decision.key, headers }, PLATFORM)
  const answer: Answer = { status: 200, headers: [], body: undefined }
  const { now } = Date
  Date.now = () => START_MS + atMs // X-RateLimit-Reset is wall time, which here is that of the scenario
  try {
    void guard({}, answer)
  } finally {
    Date.now = now
  }
  return answer
}

const PLATFORM: Platform<object, Answer> = {
  address: () => undefined,
  socketAddress: () => undefined,
  header: () => undefined,
  proxyTrust: () => 'none',
  identity: (req) => req,
  headersSent: () => false,
  setHeader: (res, name, value) => void res.headers.push(`${name}: ${value}`),
  setStatus: (res, status) => void (res.status = status),
  send: (_req, res, _problem, text) => void (res.body = text),
  onFinished: () => {},
  handlerFrame: /$^/,
}
