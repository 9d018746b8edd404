#!/usr/bin/env bash
# One would guess: a client of ioredis that listens for 'error' and whose promises are all caught ends no process.
# What happens: after its connection breaks, a subscribed client subscribes again by itself (autoResubscribe, on by default) and
# gives the promise of that to nobody. If the connection breaks again before the reply, the promise rejects: with
# maxRetriesPerRequest 0 at once (MaxRetriesPerRequestError), with the default when the client is disconnected meanwhile
# ('Connection is closed.'). Node ends the process. With autoResubscribe: false, and one's own subscribe() upon 'ready', it does not.
# Versions: ioredis 6.0.0, iovalkey 0.4.0. Source: readyHandler in built/redis/event_handler.js calls self.subscribe(channels) bare.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ioredis@6.0.0 iovalkey@0.4.0
cat >probe.mjs <<'JS'
import { createServer } from 'node:net'

const [name, options, ends] = [process.argv[2], JSON.parse(process.argv[3]), process.argv[4] === 'ends']
const { Redis } = await import(name)
// A server that answers every command but SUBSCRIBE. It confirms the first subscription, breaks that connection, and breaks
// the next one, or leaves it without an answer, when it is asked to subscribe again.
let times = 0
const server = createServer((socket) => {
  socket.on('error', () => {})
  socket.on('data', (data) => {
    const commands = data.toString().split(/(?=\*\d+\r\n\$)/)
    for (const command of commands) {
      const [word = ''] = command.toLowerCase().split('\r\n').slice(2)
      if (word === 'hello') socket.write('-ERR unknown command HELLO\r\n')
      else if (word === 'info') socket.write('$9\r\nloading:0\r\n')
      else if (word !== 'subscribe') socket.write('+OK\r\n')
      else if (++times === 1) {
        socket.write('*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n')
        setTimeout(() => socket.destroy(), 50)
      } else if (!ends) socket.destroy()
      else if (times === 2) setTimeout(() => client.disconnect(), 50)
    }
  })
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))

process.on('unhandledRejection', (error) => {
  console.log(`unhandled: ${error.name}: ${error.message}`)
  process.exit(7)
})
const client = new Redis({ port: server.address().port, host: '127.0.0.1', enableReadyCheck: false, ...options })
client.on('error', () => {})
client.on('ready', () => client.subscribe('c').catch(() => {}))
setTimeout(() => (console.log('nothing unhandled'), process.exit(0)), 1500)
JS
changed=0
# expect CODE, then what probe.mjs takes
expect() {
  local code=0
  echo "== $2 $3 ${4:-}"
  node probe.mjs "${@:2}" || code=$?
  [ "$code" = "$1" ] || changed=1
}
for name in ioredis iovalkey; do
  node -p "'$name ' + JSON.parse(require('fs').readFileSync('node_modules/$name/package.json')).version"
  expect 7 "$name" '{"maxRetriesPerRequest":0}'
  expect 7 "$name" '{}' ends
  expect 0 "$name" '{"maxRetriesPerRequest":0,"autoResubscribe":false}'
  expect 0 "$name" '{"autoResubscribe":false}' ends
done
[ "$changed" = 0 ] && echo 'as described' || echo 'CHANGED'
exit "$changed"
