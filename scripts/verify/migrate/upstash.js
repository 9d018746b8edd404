// The client of @upstash/redis speaks HTTP to one provider. This one has the same calls, on a Redis that the rows start.

/**
 * @param {import('ioredis').Redis} redis
 * @returns {any}
 */
export function upstashOf(redis) {
  return new Proxy(redis, {
    get(_target, name) {
      if (name === 'evalsha') return () => Promise.reject(new Error('NOSCRIPT'))
      if (name !== 'eval') return Reflect.get(redis, name).bind?.(redis)
      // Its first line has a flag that only that provider knows.
      return (
        /** @type {string} */ script,
        /** @type {string[]} */ keys,
        /** @type {(string | number | null)[]} */ args,
      ) =>
        redis.eval(
          script.replace(/^#!.*\n/, ''),
          keys.length,
          ...keys,
          ...args.map((arg) => String(arg ?? '')),
        )
    },
  })
}
