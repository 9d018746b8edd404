// Finds a Redis server for the tests to start: redis-server or valkey-server in PATH, or the program that
// SLUICE_REDIS_SERVER names. Where there is none, Debian's package is installed if that is possible.
import { install, isThere, run } from './debian.js'

const TO_DO =
  'Install Redis 6.2 or later, or Valkey, so that it is in PATH (Debian: apt-get install redis-server; ' +
  'macOS: brew install redis), or name it in SLUICE_REDIS_SERVER.'

/**
 * Returns undefined where a server can be started, or why not and what to do.
 * @throws {Error} where SLUICE_REDIS_SERVER names what cannot be run: a mistake, and no machine without Redis.
 */
export function ensureRedis() {
  const wanted = process.env.SLUICE_REDIS_SERVER
  if (wanted) {
    if (isThere(wanted)) return undefined
    throw new Error(`SLUICE_REDIS_SERVER must name a program that can be run, got ${wanted}. ${TO_DO}`)
  }
  if (['redis-server', 'valkey-server'].some(isThere)) return undefined
  const why = installRedis()
  return why && `there is no redis-server or valkey-server in PATH (${why}). ${TO_DO}`
}

/** Installs the server, and ends the system service that the package may have started: the tests use none. */
function installRedis() {
  const why = install(['redis-server'])
  if (why) return why
  run('invoke-rc.d', 'redis-server', 'stop')
  run('update-rc.d', 'redis-server', 'disable')
  return isThere('redis-server') ? undefined : 'the package brought none into PATH'
}
