/*
 * When ioredis (6) and iovalkey (0.4) send a command again whose connection broke before the reply, found by counting
 * executions behind a proxy that cuts the reply off:
 *
 * - A standalone client, Sentinel included, sends again after reconnecting what was unanswered. It does not with
 *   `maxRetriesPerRequest: 0`, which rejects at once, with `autoResendUnfulfilledCommands: false`, which leaves the
 *   call unsettled, or without a `retryStrategy`. Any other number, null, `enableOfflineQueue: false` and
 *   `commandTimeout` (which rejects and sends again all the same) do not help.
 * - A Cluster client sends again `retryDelayOnFailover` (100 ms) later, whatever `redisOptions` say; 0 prevents it.
 *   Nodes that reconnect by a `clusterNodeRetryStrategy` do so like standalone clients besides.
 *
 * node-redis (6) never does, save for its sentinel (node-redis.ts).
 */

export interface ReplayOptions {
  readonly maxRetriesPerRequest?: unknown
  readonly autoResendUnfulfilledCommands?: unknown
  readonly retryStrategy?: unknown
  readonly retryDelayOnFailover?: unknown
  readonly clusterNodeRetryStrategy?: unknown
  readonly redisOptions?: ReplayOptions | null
}

/** Whether a client made with these options may run a script twice for one call. */
export function replays(options: ReplayOptions, isCluster: boolean): boolean {
  if (!isCluster) return typeof options.retryStrategy === 'function' && resends(options)
  // A node that gives up reconnecting leaves its calls to `retryDelayOnFailover`, whatever its own settings.
  if (Number(options.retryDelayOnFailover) > 0) return true
  return typeof options.clusterNodeRetryStrategy === 'function' && resends(options.redisOptions ?? {})
}

function resends({ maxRetriesPerRequest, autoResendUnfulfilledCommands = true }: ReplayOptions): boolean {
  return maxRetriesPerRequest !== 0 && Boolean(autoResendUnfulfilledCommands)
}
