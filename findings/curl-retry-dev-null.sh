#!/usr/bin/env bash
# One would guess: `curl --retry 3 -o /dev/null` repeats a call that was answered 429, as the same with `-o FILE` does.
# What happens: curl empties its output before it repeats, which /dev/null refuses. It sends one request and exits with 23.
# Version: curl 7.88.1 of Debian 12. Source: src/tool_operate.c, "Failed to truncate file".
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >probe.mjs <<'JS'
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { once } from 'node:events'
let sent = 0
const server = createServer((_, res) => (sent++, res.writeHead(429, { 'retry-after': '1' }).end('wait'))).listen(0, '127.0.0.1')
await once(server, 'listening')
const curl = (output) =>
  new Promise((resolve) => {
    sent = 0
    const args = ['-sS', '--retry', '1', '-o', output, `http://127.0.0.1:${server.address().port}`]
    execFile('curl', args, (error, _, said) => resolve(`${sent} sent, exit ${error?.code ?? 0} ${said.trim()}`.trim()))
  })
const [nowhere, file] = [await curl('/dev/null'), await curl('file')]
console.log(`-o /dev/null: ${nowhere}\n-o file: ${file}`)
server.close().closeAllConnections()
process.exitCode = /^1 sent, exit 23/.test(nowhere) && file === '2 sent, exit 0' ? 0 : 1
JS
curl --version | head -1
node probe.mjs
