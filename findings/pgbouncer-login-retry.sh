#!/usr/bin/env bash
# One would guess: when Postgres is back, a PgBouncer in front of it connects for the next query.
# What happens: after a connection to Postgres has failed, PgBouncer tries no other for server_login_retry seconds, 15 by default, and
# lets queries wait or refuses them until then, though Postgres takes connections. With server_login_retry = 1 it is a second.
# Version: PgBouncer 1.18.0, PostgreSQL 15. Source: server_login_retry in https://www.pgbouncer.org/config.html.
# Takes postgresql and pgbouncer from Debian where they are missing. Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
debian() { { apt-get update && apt-get install -y --no-install-recommends "$@"; } >/dev/null 2>&1; }
command -v pgbouncer >/dev/null || debian pgbouncer
ls -d /usr/lib/postgresql/*/bin >/dev/null 2>&1 || debian postgresql
folder=$(mktemp -d)
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
# Both refuse to run as root.
as=(env)
if [ "$(id -u)" = 0 ]; then
  chown postgres "$folder"
  as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi
server() { "${as[@]}" "$bin/pg_ctl" -D "$folder/data" -w -o "-p $1 -k '' -h 127.0.0.1" -l "$folder/log" "${@:2}" >/dev/null; }
free() { node -e "const s = require('net').createServer().listen(0, '127.0.0.1', () => s.close(console.log(s.address().port)))"; }
bouncer=
trap '[ -z "$bouncer" ] || kill "$bouncer"; server 0 stop -m immediate 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund pg@8.16.3
cat >probe.mjs <<'JS'
// Queries until one is answered, and prints the seconds that it took and the last failure.
import pg from 'pg'
const [port, seconds] = process.argv.slice(2).map(Number)
const began = Date.now()
let failure = 'none'
const WAITS = { connectionTimeoutMillis: 500, query_timeout: 500 }
while (Date.now() - began < seconds * 1000) {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres', ...WAITS })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    console.log(`answered after ${((Date.now() - began) / 1000).toFixed(1)} s, last failure: ${failure}`)
    process.exit(0)
  } catch (error) {
    failure = error.message
    client.end().catch(() => {})
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
console.log(`not answered within ${seconds} s, last failure: ${failure}`)
process.exit(7)
JS
"${as[@]}" "$bin/initdb" -D "$folder/data" -U postgres -A trust --no-sync >/dev/null
pgbouncer --version | head -1
"$bin/postgres" --version
changed=0
# expect CODE SECONDS, then lines of pgbouncer.ini: Postgres stops, is asked for through PgBouncer, and starts; then the probe has SECONDS
expect() {
  local code=0 port own
  port=$(free) own=$(free)
  server "$port" start
  printf '%s\n' '[databases]' "postgres = host=127.0.0.1 port=$port user=postgres" '[pgbouncer]' \
    'listen_addr = 127.0.0.1' "listen_port = $own" 'unix_socket_dir =' 'auth_type = any' 'pool_mode = transaction' "${@:3}" >pgbouncer.ini
  "${as[@]}" pgbouncer -q pgbouncer.ini 2>/dev/null &
  bouncer=$!
  node probe.mjs "$own" 10 >/dev/null
  server "$port" stop -m immediate
  node probe.mjs "$own" 1 >/dev/null || true
  server "$port" start
  echo "== ${3:-the defaults}, within $2 s of the return"
  node probe.mjs "$own" "$2" || code=$?
  [ "$code" = "$1" ] || changed=1
  kill "$bouncer"
  wait "$bouncer" || true
  bouncer=
  server "$port" stop -m immediate
}
expect 7 8
expect 0 16
expect 0 2 'server_login_retry = 1'
[ "$changed" = 0 ] && echo 'as described' || echo 'CHANGED'
exit "$changed"
