#!/usr/bin/env bash
# One would guess: reconnectOnError, which returns true for READONLY as the README shows it, ends a connection once, however many
# commands in flight are refused by it.
# What happens: each refused command ends the connection anew, and adds a listener and a timer for its end. With eleven in one
# read Node warns of a memory leak (MaxListenersExceededWarning), which names neither READONLY nor the option.
# Versions: ioredis 6.0.0, iovalkey 0.4.0. Source: handleReconnection in built/Redis.js, disconnect in
# built/connectors/AbstractConnector.js.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ioredis@6.0.0 iovalkey@0.4.0
cat >probe.mjs <<'JS'
import { createServer } from 'node:net'

// A server that refuses each write as a replica does.
const server = createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', (data) => {
    const commands = data.toString().split(/(?=\*\d+\r\n\$)/)
    socket.write(commands.map((each) => (/incr/i.test(each) ? '-READONLY a replica\r\n' : '+OK\r\n')).join(''))
  })
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const warned = []
process.removeAllListeners('warning').on('warning', ({ name, message }) => warned.push(`${name} ${message}`))
for (const name of ['ioredis', 'iovalkey']) {
  const { Redis } = await import(name)
  const client = new Redis(server.address().port, '127.0.0.1', {
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    enableReadyCheck: false,
  })
  await client.set('k', 1)
  await Promise.allSettled(Array.from({ length: 20 }, () => client.incr('k')))
  client.disconnect()
  await new Promise((resolve) => setTimeout(resolve, 200))
  console.log(name, 'warnings:', warned.splice(0).join(' | '))
}
server.close()
JS
for name in ioredis iovalkey; do
  node -p "'$name ' + JSON.parse(require('fs').readFileSync('node_modules/$name/package.json')).version"
done
node probe.mjs | tee seen
[ "$(grep -c 'MaxListenersExceededWarning' seen)" = 2 ]
