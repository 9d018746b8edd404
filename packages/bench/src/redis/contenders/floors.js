// The least that a round trip costs, and the limiter that most articles show.

/** @typedef {import('../../contender.js').Limit} Limit */
/** @typedef {import('../../contender.js').Contender} Contender */
/** @typedef {import('../connection.js').Client} Client */

/** @type {Record<string, (redis: Client, limit: Limit) => Contender | Promise<Contender>>} */
export const floors = {
  PING: (redis) => ({ call: () => redis.ping(), allowed: (reply) => reply === 'PONG', floor: true }),
  SET: (redis) => ({
    call: (key) => redis.set(`set:${key}`, '1', 'PX', 60_000),
    allowed: (reply) => reply === 'OK',
    floor: true,
  }),
  'EVALSHA return 1': async (redis) => {
    const sha = await loaded(redis, 'return 1')
    return {
      call: (key) => redis.evalsha(sha, 1, `one:${key}`),
      allowed: (reply) => reply === 1,
      floor: true,
    }
  },
  'hand-written GCRA': async (redis, { limit, windowMs }) => {
    const sha = await loaded(redis, GCRA)
    const call = (/** @type {string} */ key) =>
      redis.evalsha(sha, 1, `gcra:${key}`, (windowMs * 1000) / limit, windowMs * 1000)
    return { call, allowed: (waitUs) => waitUs === 0 }
  },
}

/** Gives 0, or the microseconds to wait. ARGV: microseconds a call, and those of the window. */
const GCRA = `
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local per_call, window = tonumber(ARGV[1]), tonumber(ARGV[2])
  local since = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
  local wait = since + per_call - now - window
  if wait > 0 then return math.ceil(wait) end
  redis.call('SET', KEYS[1], string.format('%.0f', since + per_call), 'PX', math.ceil(window / 1000))
  return 0`

/**
 * @param {Client} redis
 * @param {string} script
 */
async function loaded(redis, script) {
  return /** @type {Promise<string>} */ (redis.script('LOAD', script))
}
