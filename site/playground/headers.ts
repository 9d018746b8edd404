import type { Decision, Limiter } from '@sluice/core'
import { createGuard, type HeaderFormat, type Platform } from '@sluice/http'
import { START_MS } from './limits.js'

/** An answer as clients get it, with the headers of a format. */
export interface Answer {
  readonly format: HeaderFormat
  status: number
  readonly headers: string[]
  body: string | undefined
}

const FORMATS = ['x-ratelimit', 'ietf', 'draft-7', 'draft-6'] as const

/** The answers about a decision at an instant, one of each format, written by the guard that all adapters share. */
export function answersOf(decision: Decision, atMs: number): readonly Answer[] {
  const limiter = { name: decision.limiter, decide: () => decision } as unknown as Limiter
  const { now } = Date
  Date.now = () => START_MS + atMs // X-RateLimit-Reset is wall time, which here is that of the scenario
  try {
    return FORMATS.map((format) => {
      const answer: Answer = { format, status: 200, headers: [], body: undefined }
      const options = { limiter, key: () => decision.key, headers: format }
      void createGuard<object, Answer>(options, PLATFORM)({}, answer)
      return answer
    })
  } finally {
    Date.now = now
  }
}

const PLATFORM: Platform<object, Answer> = {
  address: () => undefined,
  socketAddress: () => undefined,
  method: () => 'GET',
  url: () => '/',
  header: () => undefined,
  identity: (req) => req,
  headersSent: () => false,
  setHeader: (res, name, value) => void res.headers.push(`${name}: ${value}`),
  setStatus: (res, status) => void (res.status = status),
  send: (_req, res, _problem, text) => void (res.body = text),
  onFinished: () => {},
  proxySetting: '',
  handlerFrame: /$^/,
}
