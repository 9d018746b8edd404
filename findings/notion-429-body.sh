#!/usr/bin/env bash
# One would guess: Notion's client repeats what was answered 429 with Retry-After, whatever the body says.
# What happens: it repeats only where the body is an error of Notion's, with `code: 'rate_limited'`. A 429 of anything in between, with
# problem details or another JSON, is thrown at once, and its Retry-After is not read.
# Versions: @notionhq/client 5.26.0. Source: @notionhq/client, buildRequestError, canRetry.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @notionhq/client@5.26.0
cat >probe.mjs <<'JS'
import { Client, LogLevel } from '@notionhq/client'
import { once } from 'node:events'
import { createServer } from 'node:http'

const bodies = {
  'problem details': { title: 'quota exceeded', status: 429 },
  'its own error': { object: 'error', status: 429, code: 'rate_limited', message: 'slow down' },
}
const requests = {}
for (const [name, body] of Object.entries(bodies)) {
  requests[name] = 0
  const server = createServer((_, res) => {
    const [status, answer] = ++requests[name] === 1 ? [429, body] : [200, { object: 'list', results: [] }]
    res.writeHead(status, { 'content-type': 'application/json', 'retry-after': '1' }).end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const baseUrl = `http://127.0.0.1:${server.address().port}`
  const client = new Client({ auth: 'token', baseUrl, logLevel: LogLevel.ERROR })
  const seen = await client.users.list({}).then(
    () => 'resolves',
    (error) => `throws ${error.name}, code ${error.code}`,
  )
  console.log(`429 with ${name}: ${requests[name]} requests, then it ${seen}`)
  server.close().closeAllConnections()
}
process.exit(requests['problem details'] === 1 && requests['its own error'] === 2 ? 0 : 1)
JS
node probe.mjs
