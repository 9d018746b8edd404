#!/usr/bin/env bash
# One would guess: behind serverless-http or serverless-express, req.ip of Express is the last of req.ips, as on a server.
# What happens: both put a property `ip` of their own on the request, over Express's getter. An event of a load balancer has no source
# address, so req.ip is undefined or '' whatever 'trust proxy' says, although req.ips has the caller. serverless-http leaves rawHeaders empty.
# Versions: express 5.3.0, serverless-http 4.0.0, @codegenie/serverless-express 4.17.1. Source: lib/request.js, src/request.js.
# Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund express@5.3.0 serverless-http@4.0.0 @codegenie/serverless-express@4.17.1
cat >probe.cjs <<'JS'
const express = require('express')
const { createServer } = require('node:http')
const app = express().set('trust proxy', 1)
app.get('/', ({ ip = null, ips, rawHeaders }, res) => void res.json({ ip, ips, rawHeaders: rawHeaders.length }))
const event = () => ({
  httpMethod: 'GET',
  path: '/',
  headers: { host: 'localhost', 'x-forwarded-for': '203.0.113.7' },
  queryStringParameters: {},
  body: '',
  isBase64Encoded: false,
  requestContext: { elb: {} },
})
const main = async () => {
  console.log('serverless-http   ', (await require('serverless-http')(createServer(app))(event(), {})).body)
  const handle = require('@codegenie/serverless-express')({ app })
  console.log('serverless-express', (await handle(event(), {}, () => {})).body)
}
main()
JS
for name in express serverless-http @codegenie/serverless-express; do
  node -p "'$name ' + JSON.parse(require('fs').readFileSync('node_modules/$name/package.json')).version"
done
node probe.cjs | tee seen
[ "$(grep -c '"ips":\["203.0.113.7"\]' seen)" = 2 ] && [ "$(grep -cE '"ip":(null|"")' seen)" = 2 ] && grep -q '"rawHeaders":0' seen
