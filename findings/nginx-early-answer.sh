#!/usr/bin/env bash
# One would guess: nginx passes on the 429 of a service that answers before it has read an upload; by default it has the whole body anyway.
# What happens: nginx opens a connection for each request and asks for its end. Node ends it once it has answered, with the rest of the
# body unread, which resets it; nginx, which still sends, loses the answer and says 502, by chance. Kept alive, the connection passes each 429.
# Versions: nginx 1.22.1 of Debian 12, Node 20. Source: lib/_http_server.js, resOnFinish, destroySoon.
# Takes nginx from Debian where it is missing. Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
export PATH="$PATH:/usr/sbin"
command -v nginx >/dev/null || { apt-get update && apt-get install -y --no-install-recommends nginx; } >/dev/null 2>&1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >probe.mjs <<'JS'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as listener } from 'node:net'

const free = async () => {
  const server = listener().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}
const service = createServer((_, res) => res.writeHead(429, { 'retry-after': '1' }).end()).listen(0, '127.0.0.1')
await once(service, 'listening')
const folder = process.cwd()
const seen = async (more) => {
  const port = await free()
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  writeFileSync('nginx.conf', `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error; events {}
http { access_log off; client_max_body_size 0; ${temp} upstream s { server 127.0.0.1:${service.address().port}; keepalive 4; }
server { listen 127.0.0.1:${port}; location / { proxy_pass http://s; ${more} } } }`)
  const nginx = spawn('nginx', ['-p', folder, '-c', `${folder}/nginx.conf`], { stdio: 'ignore' })
  const ask = (init) => fetch(`http://127.0.0.1:${port}`, init).then(({ status }) => status, () => 0)
  for (let i = 0; i < 50 && (await ask()) === 0; i++) await new Promise((resolve) => setTimeout(resolve, 100))
  const statuses = new Set()
  for (let i = 0; i < 40; i++) statuses.add(await ask({ method: 'POST', body: Buffer.alloc(8 * 1024 * 1024) }))
  nginx.kill()
  await once(nginx, 'exit')
  return [...statuses].sort().join()
}
const [usual, kept] = [await seen(''), await seen('proxy_http_version 1.1; proxy_set_header Connection "";')]
console.log(`40 uploads of 8 MiB that are denied at once: ${usual}; with connections that are kept alive: ${kept}`)
service.close().closeAllConnections()
process.exitCode = usual.includes('502') && kept === '429' ? 0 : 1
JS
nginx -v 2>&1
node --version
node probe.mjs
