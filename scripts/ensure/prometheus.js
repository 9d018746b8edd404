// Makes sure that prometheus and promtool are there, installing Debian's package if it can, then runs the command it was
// given: node scripts/ensure/prometheus.js node scripts/check/metrics.js. Where they cannot be had it says so in one line and
// skips.
import { spawnSync } from 'node:child_process'
import { install, isThere, run } from './debian.js'

const [command, ...args] = process.argv.slice(2)
const why = ['prometheus', 'promtool'].every(isThere) ? undefined : installPrometheus()

if (why) {
  console.log(
    `skipped ${command ?? 'Prometheus'}: no prometheus or promtool in PATH (${why}); Debian: prometheus`,
  )
} else if (command) {
  process.exitCode = spawnSync(command, args, { stdio: 'inherit' }).status ?? 1
}

/** Installs the server, and ends the system service that the package may have started: the checks start their own. */
function installPrometheus() {
  const reason = install(['prometheus'])
  if (reason) return reason
  run('invoke-rc.d', 'prometheus', 'stop')
  run('update-rc.d', 'prometheus', 'disable')
  return ['prometheus', 'promtool'].every(isThere) ? undefined : 'the package brought none into PATH'
}
