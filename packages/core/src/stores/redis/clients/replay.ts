/*
 * When ioredis (6) and iovalkey (0.4) repeat a command whose connection broke before the reply, found by counting
 * executions behind a proxy that drops the reply:
 *
 * - A standalone client, also through Sentinel, repeats unanswered commands after it has reconnected. It does not with
 *   `maxRetriesPerRequest: 0`, which rejects immediately, with `autoResendUnfulfilledCommands: false`, which leaves the
 *   call unsettled, or without a `retryStrategy`. Any other number, null, `enableOfflineQueue: false` and
 *   `commandTimeout` (which rejects and still repeats) do not prevent it.
 * - A Cluster client repeats after `retryDelayOnFailover` (100 ms), whatever `redisOptions` say; 0 prevents it. Nodes that
 *   reconnect by a `clusterNodeRetryStrategy` also repeat like standalone clients.
 *
 * node-redis (6) never repeats, except in its sentinel (node-redis.ts).
 */

export interface ReplayOptions {
  readonly maxRetriesPerRequest?: unknown
  readonly autoResendUnfulfilledCommands?: unknown
  readonly retryStrategy?: unknown
  readonly retryDelayOnFailover?: unknown
  readonly clusterNodeRetryStrategy?: unknown
  readonly redisOptions?: ReplayOptions | null
}

/** Whether a client with these options may run a script twice for one call. */
export function replays(options: ReplayOptions, isCluster: boolean): boolean {
  if (!isCluster) return typeof options.retryStrategy === 'function' && resends(options)
  // A node that gives up reconnecting leaves its calls to `retryDelayOnFailover`, whatever its own settings.
  if (Number(options.retryDelayOnFailover) > 0) return true
  return typeof options.clusterNodeRetryStrategy === 'function' && resends(options.redisOptions ?? {})
}

function resends({ maxRetriesPerRequest, autoResendUnfulfilledCommands = true }: ReplayOptions): boolean {
  return maxRetriesPerRequest !== 0 && Boolean(autoResendUnfulfilledCommands)
}
