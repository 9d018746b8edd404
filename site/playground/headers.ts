import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Decision, Limiter } from '@sluice/core'
import { createGuard, nodePlatform } from '@sluice/http'
import { START_MS } from './limits.js'

const FORMATS = ['x-ratelimit', 'ietf', 'draft-7', 'draft-6'] as const

/** The answers about a decision at an instant, one of each format, written by the guard that all adapters share. */
export function answersOf(decision: Decision, atMs: number) {
  const limiter = { name: decision.limiter, decide: () => decision } as unknown as Limiter
  const { now } = Date
  Date.now = () => START_MS + atMs // X-RateLimit-Reset is wall time, which here is that of the scenario
  try {
    return FORMATS.map((format) => {
      const headers: string[] = []
      const response = {
        statusCode: 200,
        body: undefined as string | undefined,
        setHeader: (name: string, value: string) => headers.push(`${name}: ${value}`),
        end: (text: string) => (response.body = text),
      }
      const guard = createGuard({ limiter, key: () => decision.key, headers: format }, nodePlatform)
      const request = { method: 'GET', url: '/', headers: {} }
      void guard(request as IncomingMessage, response as unknown as ServerResponse)
      return { format, status: response.statusCode, headers, body: response.body }
    })
  } finally {
    Date.now = now
  }
}
