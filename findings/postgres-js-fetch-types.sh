#!/usr/bin/env bash
# One would guess: a client of postgres (postgres.js) whose queries are all awaited and caught ends no process.
# What happens: with fetch_types, on by default, each new connection first asks for the types of arrays by itself, and the promise
# of that is given to nobody. If the server ends the connection at that moment (a restart, pg_terminate_backend), it rejects, and
# Node ends the process. With fetch_types: false it does not.
# Version: postgres 3.4.9. Source: ReadyForQuery in src/connection.js returns fetchArrayTypes() bare.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund postgres@3.4.9
cat >probe.mjs <<'JS'
import { createServer } from 'node:net'
import postgres from 'postgres'

// A server that lets everybody in, and ends each connection at its first query, as Postgres does that is told to end.
const message = (type, body) => {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))])
const ENDING = message('E', Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'))
const server = createServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => {
    socket.write(WELCOME)
    socket.once('data', () => socket.end(ENDING))
  })
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))

process.on('unhandledRejection', (error) => {
  console.log(`unhandled: ${error.name}: ${error.message}`)
  process.exit(7)
})
const sql = postgres({ host: '127.0.0.1', port: server.address().port, ...JSON.parse(process.argv[2]) })
sql`select 1`.catch((error) => console.log(`caught: ${error.message}`))
setTimeout(() => (console.log('nothing unhandled'), process.exit(0)), 1500)
JS
node -p "'postgres ' + JSON.parse(require('fs').readFileSync('node_modules/postgres/package.json')).version"
changed=0
# expect CODE, then the options of the client
expect() {
  local code=0
  echo "== $2"
  node probe.mjs "$2" || code=$?
  [ "$code" = "$1" ] || changed=1
}
expect 7 '{}'
expect 0 '{"fetch_types":false}'
[ "$changed" = 0 ] && echo 'as described' || echo 'CHANGED'
exit "$changed"
