#!/usr/bin/env bash
# One would guess: undici calls a handler's onRequestStart(controller, context) alike for every request. Over a connection the
# context is undefined, or an object from interceptors.redirect(), so a handler may write ({ history = [] } = {}).
# What happens: the context of a reply of MockAgent, and of one that interceptors.cache() has kept, is null, and the default of a
# parameter does not stand in for that. A handler that takes the context apart throws, and the request fails with its TypeError.
# Version: undici 7.30.2. Source: lib/handler/unwrap-handler.js, lib/mock/mock-utils.js, lib/interceptor/cache.js.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund undici@7.30.2
cat >probe.mjs <<'JS'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Agent, interceptors, MockAgent, request } from 'undici'

// An interceptor that shows what the context is.
const seen = []
const look = (dispatch) => (options, handler) =>
  dispatch(options, {
    onRequestStart(controller, context) {
      seen.push(context === null ? 'null' : typeof context)
      handler.onRequestStart(controller, context)
    },
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  })
const get = async (url, dispatcher) => (await request(url, { dispatcher })).body.dump()

const server = createServer((_, res) => res.writeHead(200, { 'cache-control': 'max-age=60' }).end('ok'))
await once(server.listen(0, '127.0.0.1'), 'listening')
const agent = new Agent()
const cached = agent.compose(interceptors.cache(), look)
await get(`http://127.0.0.1:${server.address().port}/`, cached)
await get(`http://127.0.0.1:${server.address().port}/`, cached)
await agent.close()
server.close()

const mock = new MockAgent()
mock.get('http://mocked.example').intercept({ path: '/' }).reply(200, 'ok')
await get('http://mocked.example/', mock.compose(look))

console.log(`undici 7.30.2: over a connection ${seen[0]}, from the cache ${seen[1]}, of MockAgent ${seen[2]}`)
process.exit(seen.join() === 'undefined,null,null' ? 0 : 1)
JS
if node probe.mjs; then echo 'as described'; else echo 'CHANGED' && exit 1; fi
