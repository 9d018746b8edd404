#!/usr/bin/env bash
# One would guess: Date.now() - performance.now() is one constant of a process, so a clock may be set up when a module is loaded.
# What happens: in workerd it is the wall time while a module is loaded, where performance.now() is 0, and 0 in a request, where
# performance.now() is the wall time; performance.timeOrigin is 0 in both. A clock that took the difference at load runs at twice
# the wall time in requests. So what aligns to the epoch (hours, days) is off by the wall time at load modulo its window.
# Versions: workerd 1.20251210.0 and 1.20260730.1, by miniflare. Source: https://developers.cloudflare.com/workers/runtime-apis/performance/
# says that timers stand still while no I/O happens, and timeOrigin is 0; of the scale of now() in global scope it says nothing.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund miniflare@4.20260730.0
cat >probe.mjs <<'JS'
import { Miniflare } from 'miniflare'
const script = `
const read = () => ({ wall: Date.now(), monotonic: performance.now(), origin: performance.timeOrigin })
const atLoad = read()
export default { fetch: () => Response.json({ atLoad, inRequest: read() }) }`
const miniflare = new Miniflare({ modules: true, script, compatibilityDate: '2025-12-01' })
const seen = await (await miniflare.dispatchFetch('http://worker/')).json()
await miniflare.dispose()
console.log(seen)
const { atLoad, inRequest } = seen
const isSo = atLoad.monotonic === 0 && atLoad.wall > 1e12 && Math.abs(inRequest.monotonic - inRequest.wall) < 1000
console.log(isSo ? 'as described' : 'CHANGED')
process.exitCode = isSo ? 0 : 1
JS
node -p "'workerd ' + JSON.parse(require('fs').readFileSync('node_modules/workerd/package.json')).version"
node probe.mjs
