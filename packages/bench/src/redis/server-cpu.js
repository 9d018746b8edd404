// The CPU time of the server, by its own count.

/** @typedef {import('./connection.js').Client} Client */

/** Microseconds of CPU that the server process has used, all of its threads. @param {Client} redis */
export async function cpuOf(redis) {
  const cpu = await redis.info('cpu')
  return 1e6 * (field(cpu, 'used_cpu_user') + field(cpu, 'used_cpu_sys'))
}

/** Bytes that the server has read and written. @param {Client} redis */
export async function bytesOf(redis) {
  const stats = await redis.info('stats')
  return field(stats, 'total_net_input_bytes') + field(stats, 'total_net_output_bytes')
}

/**
 * Microseconds a decision inside scripts, their commands included: what INFO commandstats says of them.
 * @param {Client} redis
 * @param {() => Promise<number>} decide Gives how many decisions were made.
 */
export async function scriptTimeOf(redis, decide) {
  await redis.config('RESETSTAT')
  const decisions = await decide()
  const stats = await redis.info('commandstats')
  return (
    [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/gm)].reduce(
      (us, [, usec]) => us + Number(usec),
      0,
    ) / decisions
  )
}

/** Scripts that were run since the last RESETSTAT. @param {Client} redis */
export async function scriptsRun(redis) {
  const stats = await redis.info('commandstats')
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  )
}

/** @param {Client} redis */
export async function serverVersion(redis) {
  return /^redis_version:(\S+)/m.exec(await redis.info('server'))?.[1] ?? '?'
}

/**
 * @param {string} info
 * @param {string} name
 */
export function field(info, name) {
  return Number(new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1])
}
