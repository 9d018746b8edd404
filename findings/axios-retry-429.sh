#!/usr/bin/env bash
# One would guess: axios-retry with its defaults repeats errors of the network and of servers (5xx), and leaves a 429 to the caller.
# What happens: it repeats a 429 too, and without Retry-After at once: four requests within a few milliseconds.
# Versions: axios-retry 4.5.0, axios 1.21.1. Source: axios-retry, isRetryableError, noDelay.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund axios@1.21.1 axios-retry@4.5.0
cat >probe.mjs <<'JS'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import { once } from 'node:events'
import { createServer } from 'node:http'

const at = []
const server = createServer((_, res) => (at.push(performance.now()), res.writeHead(429).end())).listen(0, '127.0.0.1')
await once(server, 'listening')
const client = axios.create()
axiosRetry(client)
const error = await client.get(`http://127.0.0.1:${server.address().port}`).catch((failure) => failure)
const ms = Math.round(at.at(-1) - at[0])
console.log(`${at.length} requests in ${ms} ms, then ${error.message}`)
server.close().closeAllConnections()
process.exit(at.length === 4 && ms < 500 ? 0 : 1)
JS
node probe.mjs
