#!/usr/bin/env bash
# One would guess: after client.unref() of node-redis a process that does nothing else ends, as it does for other handles of Node.
# What happens: it ends while the client is connected, but not while nothing listens. The pause before the next attempt to connect
# (reconnectStrategy) is a timer of node:timers/promises that unref() does not reach, one after the other for ever.
# Versions: redis 6.3.1 and 5.12.1. Source: #connect and unref in dist/lib/client/socket.js.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund redis@6.3.1 redis5@npm:redis@5.12.1
cat >probe.mjs <<'JS'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'

const [, self, role, name, options] = process.argv
if (role === 'client') {
  const { createClient } = await import(name)
  const client = createClient(JSON.parse(options)).on('error', () => {})
  client.unref() // after connect() it would miss the socket that is being made
  client.connect().catch(() => {})
  setTimeout(() => {}, 1000) // until it has connected
} else {
  // A server that answers every command with OK.
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (data) => socket.write('+OK\r\n'.repeat(data.toString().split(/(?=\*\d+\r\n\$)/).length)))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const ends = (name, options) =>
    new Promise((resolve) => {
      const child = spawn(process.execPath, [self, 'client', name, JSON.stringify(options)], { timeout: 8000 })
      child.on('exit', (code) => resolve(code === 0))
    })
  const socket = { host: '127.0.0.1', port: server.address().port }
  for (const name of ['redis', 'redis5']) {
    console.log(name, 'idle: ends', await ends(name, { RESP: 2, socket }))
    console.log(name, 'nothing listens: ends', await ends(name, { socket: { host: '127.0.0.1', port: 1 } }))
  }
  server.close()
}
JS
for name in redis redis5; do
  node -p "'$name ' + JSON.parse(require('fs').readFileSync('node_modules/$name/package.json')).version"
done
node probe.mjs server | tee seen
[ "$(grep -c 'idle: ends true' seen)" = 2 ] && [ "$(grep -c 'listens: ends false' seen)" = 2 ]
