// Makes sure that the tests find a Redis server to start: redis-server or valkey-server in PATH, or the program that
// SLUICE_REDIS_SERVER names. Where there is none it installs Debian's package if it can, else says what to do, exit 1.
import { install, isThere, run } from './debian.js'

const wanted = process.env.SLUICE_REDIS_SERVER
const programs = wanted ? [wanted] : ['redis-server', 'valkey-server']

if (!programs.some(isThere)) {
  const why = wanted ? 'SLUICE_REDIS_SERVER is no program' : installRedis()
  if (why) {
    console.error(
      `The tests start their own Redis, but there is no ${programs.join(' or ')} (${why}). ` +
        'Install Redis 6.2 or later, or Valkey, so that it is in PATH (Debian: apt-get install redis-server; ' +
        'macOS: brew install redis), or name it in SLUICE_REDIS_SERVER.',
    )
    process.exit(1)
  }
}

/** Installs the server, and ends the system service that the package may have started: the tests use none. */
function installRedis() {
  const why = install(['redis-server'])
  if (why) return why
  run('invoke-rc.d', 'redis-server', 'stop')
  run('update-rc.d', 'redis-server', 'disable')
  return isThere('redis-server') ? undefined : 'the package brought none into PATH'
}
