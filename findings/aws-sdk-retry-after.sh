#!/usr/bin/env bash
# One would guess: the AWS SDK for JavaScript waits by its own backoff alone, or as long as the Retry-After of a 429 says.
# What happens: it obeys Retry-After up to 5 s beyond its own backoff. Told 2 s it waits 2 s, told 30 s it is back after 5 to 7 s.
# Version: @aws-sdk/client-dynamodb 3.1169.0. Source: @smithy retry strategy, the hint of a retry.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @aws-sdk/client-dynamodb@3.1169.0
cat >probe.mjs <<'JS'
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import { once } from 'node:events'
import { createServer } from 'node:http'

const firstWait = async (told) => {
  const at = []
  const server = createServer((_, res) => {
    if (at.push(performance.now()) > 1) return res.writeHead(200, { 'content-type': 'application/x-amz-json-1.0' }).end('{}')
    res.writeHead(429, { 'retry-after': told }).end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' }
  const client = new DynamoDBClient({ region: 'eu-west-1', credentials, endpoint: `http://127.0.0.1:${server.address().port}` })
  await client.send(new ListTablesCommand())
  server.close().closeAllConnections()
  return (at[1] - at[0]) / 1000
}
const [short, long] = [await firstWait('2'), await firstWait('30')]
console.log(`told 2 s it waits ${short.toFixed(1)} s, told 30 s it waits ${long.toFixed(1)} s`)
process.exit(short >= 1.95 && short < 4 && long > 4.9 && long < 8 ? 0 : 1)
JS
node --no-warnings probe.mjs
