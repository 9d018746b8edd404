// What every framework is measured in.
import { GENEROUS } from '../contender.js'

/** @typedef {import('../contender.js').Limit} Limit */

/**
 * @typedef {object} Mode
 * @property {(peer: string) => readonly string[]} contenders
 * @property {Limit} limit
 * @property {200 | 429} status
 * @property {boolean} onRedis A thousand users; else all requests come from one address.
 */

export const BARE = 'bare'
export const HAND_WRITTEN = 'hand-written'
export const SLUICE = 'Sluice'
export const ON_REDIS = 'Sluice on Redis'
export const ONE_SET = 'one SET'

/** @type {Record<'allowed' | 'denied' | 'Redis', Mode>} */
export const modes = {
  allowed: {
    contenders: (peer) => [BARE, HAND_WRITTEN, SLUICE, peer],
    limit: GENEROUS,
    status: 200,
    onRedis: false,
  },
  denied: {
    contenders: (peer) => [HAND_WRITTEN, SLUICE, peer],
    limit: { limit: 1, windowMs: 86_400_000 },
    status: 429,
    onRedis: false,
  },
  Redis: {
    contenders: (peer) => [ONE_SET, ON_REDIS, `${peer} on Redis`],
    limit: GENEROUS,
    status: 200,
    onRedis: true,
  },
}
