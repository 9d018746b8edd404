#!/usr/bin/env bash
# One would guess: Fastify's logger writes two lines for a request, as it comes and as it is answered, and one of them has the status.
# What happens: for a request whose handler throws there are three, and two of them have status 500. The one with `err` has caller and
# status and looks like the line of the call; the one of the answer has no caller, as for every request. Who counts lines with a status
# counts errors twice, and who counts lines with caller and status counts the errors alone.
# Version: Fastify 5.12.8. Source: defaultErrorHandler and onResFinished in https://github.com/fastify/fastify.
# Needs npm. Exits 0 while that is so, 1 when it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund fastify@5.12.8
cat >probe.mjs <<'JS'
import Fastify from 'fastify'
const lines = []
const app = Fastify({ logger: { stream: { write: (line) => lines.push(JSON.parse(line)) } } })
app.get('/works', async () => 'hello')
app.get('/fails', async () => {
  throw new Error('as it may')
})
const parts = ({ req, res, err, responseTime }) =>
  [req && 'req', res && `res ${res.statusCode}`, err && 'err', responseTime && 'responseTime'].filter(Boolean).join(' + ')
let found = ''
for (const url of ['/works', '/fails']) {
  lines.length = 0
  await app.inject(url)
  found += `${url}: ${lines.map(parts).join(' | ')}\n`
}
process.stdout.write(found)
const expected = `/works: req | res 200 + responseTime
/fails: req | req + res 500 + err | res 500 + responseTime
`
process.exit(found === expected ? 0 : 1)
JS
node -p "'fastify ' + require('./node_modules/fastify/package.json').version"
if node probe.mjs; then echo 'as described'; else echo 'CHANGED' && exit 1; fi
