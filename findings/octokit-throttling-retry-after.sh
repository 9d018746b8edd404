#!/usr/bin/env bash
# One would guess: Octokit's plugin for throttling, with onRateLimit: () => true, waits as long as the Retry-After of a 429 says.
# What happens: it looks at a refusal only if x-ratelimit-remaining is 0, and then waits until x-ratelimit-reset, or if the message speaks
# of a secondary rate. Any other is left to the plugin for retries, which comes back after 1 s whatever Retry-After says.
# Versions: @octokit/plugin-throttling 11.0.5, @octokit/plugin-retry 8.1.1, @octokit/core 7.0.8. Source: throttling/src/index.ts.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @octokit/core@7.0.8 @octokit/plugin-retry@8.1.1 @octokit/plugin-throttling@11.0.5
cat >probe.mjs <<'JS'
import { Octokit } from '@octokit/core'
import { retry } from '@octokit/plugin-retry'
import { throttling } from '@octokit/plugin-throttling'
import { once } from 'node:events'
import { createServer } from 'node:http'

const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const firstWait = async (headers) => {
  const at = []
  const server = createServer((_, res) => {
    if (at.push(performance.now()) > 1) return res.writeHead(200).end()
    res.writeHead(429, headers()).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const again = () => true
  const octokit = new (Octokit.plugin(throttling, retry))({ log: quiet, throttle: { onRateLimit: again, onSecondaryRateLimit: again } })
  await octokit.request(`GET http://127.0.0.1:${server.address().port}/`)
  server.close()
  return Math.round((at[1] - at[0]) / 1000)
}
const told = await firstWait(() => ({ 'retry-after': '6' }))
const reset = () => String(Math.ceil(Date.now() / 1000) + 6)
const used = await firstWait(() => ({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': reset() }))
console.log(`told to wait 6 s by Retry-After it waits ${told} s, by x-ratelimit-reset ${used} s`)
process.exit(told === 1 && used >= 6 ? 0 : 1)
JS
node probe.mjs
