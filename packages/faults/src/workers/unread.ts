import { pathToFileURL } from 'node:url'
import { resolve } from 'node:path'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, type Limiter, slidingLog } from '@sluice/core'
import { bytesInUse } from '@sluice/harness/figures'
import { serve } from './fleet-member.js'

/* A server whose WebSocket messages are denied, for row 43: the first 'go' starts it, each later one reports what it has gained. */

export interface UnreadJob {
  /** A module of `packages` that exports servers as `unread`, and the name of one. */
  readonly file: string
  readonly name: string
}

export interface UnreadResult {
  readonly port: number
  readonly denied: number
  /** Bytes since the start. */
  readonly growth: number
}

interface Servers {
  readonly unread: Readonly<Record<string, (limiter: Limiter) => Promise<Server>>>
}

serve<UnreadJob, UnreadResult>(async ({ file, name }) => {
  const { unread } = (await import(pathToFileURL(resolve('packages', file)).href)) as Servers
  const limiter = createLimiter({ name: 'messages', policies: [slidingLog({ limit: 1, window: '1d' })] })
  let denied = 0
  limiter.on('decision', ({ decision }) => void (decision.allowed || denied++))
  const server = await unread[name]!(limiter)
  const { port } = server.address() as AddressInfo
  let base: number | undefined
  return async () => {
    base ??= bytesInUse()
    return { port, denied, growth: bytesInUse() - base }
  }
})
