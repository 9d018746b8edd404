#!/usr/bin/env bash
# One would guess: an EventSource whose stream has ended, and which is answered 429 with Retry-After when it connects again, goes on trying.
# What happens: any status but 200 closes it for good, as the standard says, also 503 and also after hours of a good connection.
# Versions: eventsource 4.1.1, undici 7.30.2. Source: HTML, "fail the connection".
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund eventsource@4.1.1 undici@7.30.2
cat >probe.mjs <<'JS'
import { EventSource as OfNpm } from 'eventsource'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { EventSource as OfUndici } from 'undici'

const sends = async (EventSource, status) => {
  let sent = 0
  const server = createServer((_, res) => {
    if (++sent > 1) return res.writeHead(status, { 'retry-after': '1' }).end()
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 100\ndata: hello\n\n')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const source = new EventSource(`http://127.0.0.1:${server.address().port}`)
  await new Promise((resolve) => setTimeout(resolve, 4000))
  const state = source.readyState
  source.close()
  server.close().closeAllConnections()
  return `${sent} connections, readyState ${state}`
}
const seen = await Promise.all([OfNpm, OfUndici].flatMap((each) => [429, 503].map((status) => sends(each, status))))
console.log(`eventsource: 429 ${seen[0]}, 503 ${seen[1]}; undici: 429 ${seen[2]}, 503 ${seen[3]}`)
process.exit(seen.every((each) => each === '2 connections, readyState 2') ? 0 : 1)
JS
node --no-warnings probe.mjs
