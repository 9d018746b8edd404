// What gateways do to a limit behind them: npm run verify -- gateways [--write]. Each stands on loopback before a service that Sluice
// limits, and is sent the same requests. Prints where the table of docs/http.md differs from what was seen, with exit 1; --write writes it.
// Programs are Debian's; packages come from npm, into this folder, or are those of the root.
import replyFrom from '@fastify/reply-from'
import { createAdaptorServer } from '@hono/node-server'
import { createLimiter, gcra } from '@sluice/core'
import { rateLimit as forExpress } from '@sluice/express'
import { rateLimit as forFastify } from '@sluice/fastify'
import { rateLimit as forHono } from '@sluice/hono'
import { limitedListener, limitNodeRequest } from '@sluice/http'
import express from 'express'
import fastify from 'fastify'
import { H3, proxyRequest } from 'h3'
import { toNodeHandler } from 'h3/node'
import { Hono } from 'hono'
import { proxy } from 'hono/proxy'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { chmodSync, readFileSync } from 'node:fs'
import { Agent, createServer } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'
import { listening, started, versionBy } from '../../../scripts/verify/started.js'
import { writeOrCompare } from '../../../scripts/verify/written-tables.js'

const PAGE = fileURLToPath(new URL('../../../docs/http.md', import.meta.url))
const [UPLOAD, UPLOADS] = [8 * 1024 * 1024, 12]
const LIMITS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
/** The limit of the service, and of a gateway that has one of its own, so that headers show whose they are. */
const [SERVICE, GATEWAY] = [100, 1000]
const own = { name: 'gateway', limit: GATEWAY, window: '1h', key: () => 'caller' }
// prettier-ignore
const TITLES = ['gateway', 'version', 'set up with', 'whose headers a 200 has', 'whose a 429 has', '`X-Forwarded-For` that arrives', 'the same where the client has sent `198.51.100.1`', 'the next call after a 429 with `no-store`', 'after a 429 without `Cache-Control`', 'a denied upload of 8 MiB, as its client sees it']

/** Packages are pinned by this folder, or by the root. */
const manifest = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'))
const [root, here] = [manifest('../../../package.json'), manifest('package.json')]
const VERSIONS = { ...root.devDependencies, ...here.dependencies }

const service = await startService()
const { host } = new URL(service.origin)
const rows = []
for (const [name, [how, start]] of Object.entries(gateways())) {
  console.log(name)
  const { origin, version, stop } = await start(temporaryFolder('gateway'))
  rows.push([name, version, how, ...(await look(origin))])
  await stop()
}
service.stop()
writeOrCompare(PAGE, { gateways: [TITLES, ...rows] })

/** By name: what it is set up with, and how it starts. */
function gateways() {
  // prettier-ignore
  return {
    nginx: ['`proxy_pass`, `proxy_cache_valid any 1m`, `$proxy_add_x_forwarded_for`', nginx('')],
    'nginx, kept alive': ['the same, with `proxy_http_version 1.1` and `proxy_set_header Connection ""`', nginx('proxy_http_version 1.1; proxy_set_header Connection "";')],
    HAProxy: ['`option forwardfor`, `http-request cache-use`', debian('haproxy', '-v', (port) => `defaults\n mode http\n option forwardfor\n timeout client 5s\n timeout server 5s\n timeout connect 5s\ncache a\n total-max-size 4\n max-age 60\nlisten web\n bind 127.0.0.1:${port}\n http-request cache-use a\n http-response cache-store a\n server s ${host}\n`, (file) => ['-f', file])],
    Caddy: ['`reverse_proxy`', debian('caddy', 'version', (port, folder) => `{\n admin off\n auto_https off\n storage file_system ${folder}/data\n}\nhttp://:${port} {\n bind 127.0.0.1\n reverse_proxy ${host}\n}\n`, (file) => ['run', '--config', file, '--adapter', 'caddyfile'])],
    Varnish: ['its own VCL', debian('varnishd', '-V', () => `vcl 4.1; backend s { .host = "127.0.0.1"; .port = "${host.split(':')[1]}"; }`, (file, port, folder) => ['-F', '-n', join(folder, 'varnish'), '-a', `127.0.0.1:${port}`, '-f', file])],
    ...besideLimit('@fastify/reply-from', '`reply.from(url)`', replying),
    ...besideLimit('http-proxy-middleware', '`xfwd: true`', forwarding),
    'http-proxy-middleware, kept alive': ['`xfwd: true`, `agent: new Agent({ keepAlive: true })`', alone('http-proxy-middleware', () => forwarding(false, { agent: new Agent({ keepAlive: true }) }))],
    ...besideLimit('hono/proxy', '`proxy(url, c.req)`', ofHono),
    ...besideLimit('h3', '`proxyRequest`', (limits) => {
      const handler = toNodeHandler(new H3().all('/**', (event) => proxyRequest(event, service.origin + event.url.pathname)))
      return createServer(limits ? limitedListener(handler, own) : handler)
    }),
  }
}

/** @param {string} more */
function nginx(more) {
  const textOf = (port, folder) => {
    const kept = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    const temp = kept.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
    return `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error; events {} http { access_log off; client_max_body_size 0; ${temp}
proxy_cache_path ${folder}/cache keys_zone=a:1m; proxy_cache a; proxy_cache_valid any 1m; upstream s { server ${host}; keepalive 4; }
server { listen 127.0.0.1:${port}; location / { proxy_pass http://s; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; ${more} } } }`
  }
  return debian('nginx', '-v', textOf, (file, _, folder) => ['-p', folder, '-c', file])
}

/** A program of Debian, whose configuration and arguments may name its folder. */
function debian(program, flag, textOf, argsOf) {
  return async (folder) => {
    chmodSync(folder, 0o755) // varnishd reads its VCL as another user
    const textFor = (port) => textOf(port, folder)
    const running = await started(program, folder, textFor, (file, port) => argsOf(file, port, folder))
    return { ...running, version: versionBy(program, flag) }
  }
}

/** A package alone, and with a limit of Sluice in it. */
function besideLimit(name, how, serve) {
  const both = [alone(name, () => serve(false)), alone(name, () => serve(true))]
  return { [name]: [how, both[0]], [`${name}, limited`]: ['the same behind a limit of Sluice', both[1]] }
}

function alone(name, serve) {
  const version = VERSIONS[name.replace('/proxy', '')]
  return async () => ({ ...(await listening(await serve())), version })
}

async function replying(limits) {
  const app = fastify()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, body, done) => done(null, body))
  await app.register(replyFrom, { base: service.origin })
  if (limits) await app.register(forFastify, own)
  app.all('/*', (request, reply) => reply.from(request.url))
  await app.ready()
  return app.server
}

function forwarding(limits, options) {
  const app = express()
  if (limits) app.use(forExpress(own))
  const logger = { info() {}, warn() {}, error() {} }
  return createServer(
    app.use(createProxyMiddleware({ target: service.origin, xfwd: true, logger, ...options })),
  )
}

function ofHono(limits) {
  const app = new Hono()
  if (limits) app.use(forHono(own))
  return createAdaptorServer(app.all('*', (c) => proxy(service.origin + c.req.path, c.req)))
}

/** The service behind: allowed at /free, denied elsewhere, and at /uncontrolled by another limiter, which says nothing to caches. */
async function startService() {
  const seen = []
  const limiter = createLimiter({ name: 'service', policies: [gcra({ limit: SERVICE, window: '365d' })] })
  const limits = limitNodeRequest({ limiter, key: (req) => (req.url.startsWith('/free') ? 'free' : 'full') })
  await limiter.consume('full', { cost: SERVICE })
  const answer = async (req, res) => {
    seen.push(req.rawHeaders)
    if (req.url.startsWith('/uncontrolled')) return res.writeHead(429, { 'x-ratelimit-limit': SERVICE }).end()
    if (await limits(req, res)) res.end('hello')
  }
  return { ...(await listening(createServer((req, res) => void answer(req, res)))), seen }
}

async function look(origin) {
  const ok = await fetch(`${origin}/free`)
  const plain = arrived()
  await fetch(`${origin}/free?with`, { headers: { 'x-forwarded-for': '198.51.100.1' } })
  const sent = arrived()
  const denied = await fetch(`${origin}/denied`)
  const cached = [await isCached(`${origin}/denied?again`), await isCached(`${origin}/uncontrolled`)]
  // Some end by chance one way or another.
  const uploads = new Set()
  for (let i = 0; i < UPLOADS; i++) uploads.add(await upload(new URL(origin)))
  const seen = [...uploads].toSorted((a, b) => a.localeCompare(b)).join('; or ')
  return [whose(ok), whose(denied), plain, sent, ...cached, seen]
}

/** Whose limit the headers of a response show. */
function whose({ status, headers }) {
  const lost = [...LIMITS, ...(status === 429 ? ['retry-after'] : [])].filter((name) => !headers.has(name))
  const from =
    { [SERVICE]: "the service's", [GATEWAY]: "the gateway's" }[headers.get(LIMITS[0])] ?? "nobody's"
  return lost.length > 0 ? `${from}, without ${lost.join()}` : from
}

/** X-Forwarded-For of the latest request, line by line, and other headers with an address. */
function arrived() {
  const raw = service.seen.at(-1)
  const named = (form) =>
    raw.flatMap((name, i) => (i % 2 === 0 && form.test(name) ? [[name.toLowerCase(), raw[i + 1]]] : []))
  const lines = named(/^x-forwarded-for$/i).map(([, value]) => `\`${value}\``)
  const others = named(/^(forwarded|x-real-ip|via|x-forwarded-(host|proto|port))$/i).map(([name]) => name)
  return [lines.join(' and ') || 'none', ...others].join('; ')
}

async function isCached(url) {
  await (await fetch(url)).text()
  const before = service.seen.length
  await (await fetch(url)).text()
  return service.seen.length > before ? 'asked again' : '**from the cache**'
}

/** What a client sees that sends all of its body whatever comes, and whether its connection serves another request within 5 s. */
async function upload({ hostname, port }) {
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.on('data', (piece) => (text += piece.toString('latin1'))).on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const chunk = Buffer.alloc(64 * 1024)
  const fields = ['host: a', 'content-type: application/octet-stream', `content-length: ${UPLOAD}`]
  socket.write(`POST /upload HTTP/1.1\r\n${fields.join('\r\n')}\r\n\r\n`)
  let isRead = true
  for (let sent = 0; sent < UPLOAD && !socket.destroyed && isRead; sent += chunk.length) {
    if (socket.write(chunk)) continue
    const drained = new Promise((resolve) => socket.once('drain', () => resolve(true)))
    isRead = await Promise.race([drained, closed.then(() => false), later(3000, false)])
  }
  for (let i = 0; i < 40 && text === '' && !socket.destroyed; i++) await later(100)
  const head = text.length
  if (isRead) socket.write('GET /free HTTP/1.1\r\nhost: a\r\n\r\n')
  const isServed = () => text.slice(head).includes('HTTP/1.1 200')
  for (let i = 0; i < 100 && isRead && !isServed() && !socket.destroyed; i++) await later(50)
  socket.destroy()
  return `${/^HTTP\/1.1 (\d+)/.exec(text)?.[1] ?? 'no answer'}, the connection ${isServed() ? 'stays' : 'ends'}`
}
