// What gateways do to a limit behind them: npm run verify -- gateways [--write]. Each stands on loopback before a service that Sluice
// limits, and is sent the same requests. Prints where the table of docs/http.md differs from what was seen, with exit 1; --write writes it.
// Programs are Debian's; packages come from npm, into this folder, or are those of the root.
import replyFrom from '@fastify/reply-from'
import { serve as serveHono } from '@hono/node-server'
import { createLimiter, gcra } from '@sluice/core'
import { rateLimit as forExpress } from '@sluice/express'
import { rateLimit as forFastify } from '@sluice/fastify'
import { freePort } from '@sluice/harness/redis'
import { rateLimit as forHono } from '@sluice/hono'
import { limitedListener, limitNodeRequest } from '@sluice/http'
import express from 'express'
import fastify from 'fastify'
import { H3, proxyRequest } from 'h3'
import { toNodeHandler } from 'h3/node'
import { Hono } from 'hono'
import { proxy } from 'hono/proxy'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { Agent, createServer } from 'node:http'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'
import { writeOrCompare } from '../../../scripts/verify/written-tables.js'

process.env.PATH += ':/usr/sbin' // where Debian has its servers
const PAGE = fileURLToPath(new URL('../../../docs/http.md', import.meta.url))
const UPLOAD = 8 * 1024 * 1024
const UPLOADS = 12
const LIMITS = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
/** The limit of the service, and of a gateway that has one of its own, so that headers show whose they are. */
const [SERVICE, GATEWAY] = [100, 1000]
const own = { name: 'gateway', limit: GATEWAY, window: '1h', key: () => 'caller' }

const service = await startService()
const rows = []
for (const [name, [how, start]] of Object.entries(gateways())) {
  console.log(name)
  const { origin, version, stop } = await start(temporaryFolder('gateway'))
  rows.push(await look(name, version, how, origin))
  await stop()
}
service.close()
const titles = [
  'gateway',
  'version',
  'set up with',
  'of the headers of a 200',
  'of a 429',
  '`X-Forwarded-For` that arrives',
  'where the client has sent `198.51.100.1`',
  'a second 429 after `no-store`',
  'after no `Cache-Control`',
  'a denied upload of 8 MiB',
]
writeOrCompare(PAGE, { gateways: [titles, ...rows] })

/** By name: what it is set up with, and how it starts. */
function gateways() {
  return {
    nginx: ['`proxy_pass`, `proxy_cache_valid any 1m`, `$proxy_add_x_forwarded_for`', nginx('')],
    'nginx, kept alive': [
      'the same, with `proxy_http_version 1.1` and `proxy_set_header Connection ""`',
      nginx('proxy_http_version 1.1; proxy_set_header Connection "";'),
    ],
    HAProxy: [
      '`option forwardfor`, `http-request cache-use`',
      debian(
        'haproxy',
        '-v',
        ({ port }) => ({
          'haproxy.cfg': `defaults\n mode http\n option forwardfor\n timeout client 5s\n timeout server 5s\n timeout connect 5s\ncache a\n total-max-size 4\n max-age 60\nlisten web\n bind 127.0.0.1:${port}\n http-request cache-use a\n http-response cache-store a\n server s ${new URL(service.origin).host}\n`,
        }),
        (folder) => ['-f', join(folder, 'haproxy.cfg')],
      ),
    ],
    Caddy: [
      '`reverse_proxy`',
      debian(
        'caddy',
        'version',
        ({ folder, port }) => ({
          Caddyfile: `{\n admin off\n auto_https off\n storage file_system ${folder}/data\n}\nhttp://:${port} {\n bind 127.0.0.1\n reverse_proxy ${new URL(service.origin).host}\n}\n`,
        }),
        (folder) => ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'],
      ),
    ],
    Varnish: [
      'its own VCL',
      debian(
        'varnishd',
        '-V',
        () => ({
          'a.vcl': `vcl 4.1; backend s { .host = "127.0.0.1"; .port = "${new URL(service.origin).port}"; }`,
        }),
        (folder, port) => [
          '-F',
          '-n',
          join(folder, 'varnish'),
          '-a',
          `127.0.0.1:${port}`,
          '-f',
          join(folder, 'a.vcl'),
        ],
      ),
    ],
    ...besideLimit('@fastify/reply-from', '`reply.from(url)`', async (limits) => {
      const app = fastify()
      app.removeAllContentTypeParsers()
      app.addContentTypeParser('*', (_request, body, done) => done(null, body))
      await app.register(replyFrom, { base: service.origin })
      if (limits) await app.register(forFastify, own)
      app.all('/*', (request, reply) => reply.from(request.url))
      await app.listen({ port: 0, host: '127.0.0.1' })
      return app.server
    }),
    ...besideLimit('http-proxy-middleware', '`xfwd: true`', forwarding),
    'http-proxy-middleware, kept alive': [
      '`xfwd: true`, `agent: new Agent({ keepAlive: true })`',
      alone('http-proxy-middleware', () => forwarding(false, new Agent({ keepAlive: true }))),
    ],
    ...besideLimit(
      'hono/proxy',
      '`proxy(url, c.req)`',
      (limits) => {
        const app = new Hono()
        if (limits) app.use(forHono(own))
        app.all('*', (c) => proxy(service.origin + c.req.path, c.req))
        return new Promise((resolve) => {
          const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () =>
            resolve(server),
          )
        })
      },
      'hono',
    ),
    ...besideLimit('h3', '`proxyRequest`', (limits) => {
      const app = new H3().all('/**', (event) => proxyRequest(event, service.origin + event.url.pathname))
      const handler = toNodeHandler(app)
      return listening(createServer(limits ? limitedListener(handler, own) : handler))
    }),
  }
}

/** @param {string} more */
function nginx(more) {
  const files = ({ folder, port }) => ({
    'nginx.conf': `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error; events {} http { access_log off; client_max_body_size 0;
client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3; uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
proxy_cache_path ${folder}/cache keys_zone=a:1m; proxy_cache a; proxy_cache_valid any 1m;
upstream s { server ${new URL(service.origin).host}; keepalive 4; } server { listen 127.0.0.1:${port}; location / { proxy_pass http://s; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; ${more} } } }`,
  })
  return debian('nginx', '-v', files, (folder) => ['-p', folder, '-c', join(folder, 'nginx.conf')])
}

/** A package alone, and with a limit of Sluice in it. */
function besideLimit(name, how, serve, from = name) {
  return {
    [name]: [how, alone(from, () => serve(false))],
    [`${name}, limited`]: ['the same behind a limit of Sluice', alone(from, () => serve(true))],
  }
}

function alone(from, serve) {
  return async () => {
    const server = await serve()
    const stop = async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
    return { origin: `http://127.0.0.1:${server.address().port}`, version: versionOf(from), stop }
  }
}

function forwarding(limits, agent) {
  const app = express()
  if (limits) app.use(forExpress(own))
  const options = {
    target: service.origin,
    xfwd: true,
    logger: { info() {}, warn() {}, error() {} },
    ...(agent && { agent }),
  }
  return listening(createServer(app.use(createProxyMiddleware(options))))
}

/** A program of Debian with files of a folder. */
function debian(program, versionFlag, files, args) {
  return async (folder) => {
    const port = await freePort()
    chmodSync(folder, 0o755) // varnishd reads its VCL as another user
    for (const [name, text] of Object.entries(files({ folder, port })))
      writeFileSync(join(folder, name), text)
    const child = spawn(program, args(folder, port), { stdio: 'ignore' })
    const origin = `http://127.0.0.1:${port}`
    for (
      let i = 0;
      i < 100 &&
      !(await fetch(`${origin}/free`).then(
        ({ ok }) => ok,
        () => false,
      ));
      i++
    )
      await new Promise((resolve) => setTimeout(resolve, 100))
    const { stdout, stderr } = spawnSync(program, [versionFlag], { encoding: 'utf8' })
    const stop = async () => {
      child.kill()
      if (child.exitCode === null) await once(child, 'exit')
    }
    return { origin, version: /\d+\.\d+\.\d+/.exec(stdout + stderr)?.[0] ?? 'unknown', stop }
  }
}

function versionOf(name) {
  let folder = dirname(createRequire(import.meta.url).resolve(name))
  for (;;) {
    try {
      const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      if (version) return version
    } catch {}
    folder = dirname(folder)
  }
}

async function listening(server) {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return server
}

/** The service behind: allowed at /free, denied at /denied and /upload, and denied by another limiter at /uncontrolled. */
async function startService() {
  const seen = []
  const limiter = createLimiter({ name: 'service', policies: [gcra({ limit: SERVICE, window: '365d' })] })
  const limits = limitNodeRequest({ limiter, key: (req) => (req.url.startsWith('/free') ? 'free' : 'full') })
  await limiter.consume('full', { cost: SERVICE })
  const server = createServer(async (req, res) => {
    const { socket } = req
    const before = socket.bytesRead
    // Node reads a body that nobody has asked for away, so its bytes are seen on the socket alone.
    seen.push({ url: req.url, raw: req.rawHeaders, bytes: () => socket.bytesRead - before })
    if (req.url.startsWith('/uncontrolled')) return res.writeHead(429, { 'x-ratelimit-limit': SERVICE }).end()
    if (await limits(req, res)) res.end('hello')
  })
  await listening(server)
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    seen,
    close: () => (server.close(), server.closeAllConnections()),
  }
}

async function look(name, version, how, origin) {
  const ok = await fetch(`${origin}/free`)
  const plain = arrived()
  await fetch(`${origin}/free?with`, { headers: { 'x-forwarded-for': '198.51.100.1' } })
  const sent = arrived()
  const denied = await fetch(`${origin}/denied`)
  const stored = await isCached(`${origin}/denied?again`)
  const uncontrolled = await isCached(`${origin}/uncontrolled`)
  return [
    name,
    version,
    how,
    whose(ok),
    whose(denied),
    plain,
    sent,
    stored,
    uncontrolled,
    await uploads(origin),
  ]
}

/** Whose limit the headers of a response show. */
function whose(response) {
  const [limit] = LIMITS.map((name) => response.headers.get(name))
  const lost = [...LIMITS, ...(response.status === 429 ? ['retry-after'] : [])].filter(
    (name) => !response.headers.has(name),
  )
  const from = { [SERVICE]: "the service's", [GATEWAY]: "the gateway's" }[limit] ?? `\`${limit}\``
  return `${response.status === 200 || response.status === 429 ? '' : `${response.status}: `}${from}${lost.length > 0 ? `, without ${lost.join()}` : ''}`
}

/** X-Forwarded-For of the latest request, line by line, and other headers with an address. */
function arrived() {
  const { raw } = service.seen.at(-1)
  const pairs = raw.flatMap((name, i) => (i % 2 === 0 ? [[name.toLowerCase(), raw[i + 1]]] : []))
  const lines = pairs.filter(([name]) => name === 'x-forwarded-for').map(([, value]) => `\`${value}\``)
  const others = pairs
    .filter(([name]) => /^(forwarded|x-real-ip|via|x-forwarded-(host|proto|port)|x-varnish)$/.test(name))
    .map(([name]) => name)
  return `${lines.join(' and ') || 'none'}${others.length > 0 ? `; ${others.join(', ')}` : ''}`
}

async function isCached(url) {
  await (await fetch(url)).text()
  const before = service.seen.length
  await (await fetch(url)).text()
  return service.seen.length > before ? 'asked again' : '**from the cache**'
}

/** What becomes of several denied uploads, as some end by chance one way or another. */
async function uploads(origin) {
  const seen = new Set()
  for (let i = 0; i < UPLOADS; i++) seen.add(await upload(origin))
  return [...seen].sort().join(' or ')
}

/** What a client sees that sends all of its body whatever comes, and whether its connection serves another request. */
async function upload(origin) {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  const from = service.seen.length
  let text = ''
  let failed = ''
  socket
    .setEncoding('latin1')
    .on('data', (chunk) => (text += chunk))
    .on('error', ({ code }) => (failed = code))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const chunk = Buffer.alloc(64 * 1024)
  socket.write(
    `POST /upload HTTP/1.1\r\nhost: a\r\ncontent-type: application/octet-stream\r\ncontent-length: ${UPLOAD}\r\n\r\n`,
  )
  let isStalled = false
  for (let sent = 0; sent < UPLOAD && !socket.destroyed && !isStalled; sent += chunk.length) {
    if (socket.write(chunk)) continue
    const drained = once(socket, 'drain').then(
      () => true,
      () => false,
    )
    isStalled = !(await Promise.race([
      drained,
      closed.then(() => false),
      late(text === '' ? 2 : 0.3).then(() => false),
    ]))
  }
  for (let i = 0; i < 40 && text === '' && !socket.destroyed; i++) await late(0.1)
  const status = /^HTTP\/1.1 (\d+)/.exec(text)?.[1] ?? `no answer${failed && `, ${failed}`}`
  const head = text.length
  if (!isStalled) socket.write('GET /free HTTP/1.1\r\nhost: a\r\n\r\n')
  const isServed = () => text.slice(head).includes('HTTP/1.1 200')
  for (let i = 0; i < 20 && !isStalled && !isServed() && !socket.destroyed; i++)
    await Promise.race([closed, late(0.05)])
  const isKept = isServed()
  socket.destroy()
  const received =
    service.seen
      .slice(from)
      .find(({ url }) => url === '/upload')
      ?.bytes() ?? 0
  const share =
    received >= UPLOAD - 65_536 ? 'all of it' : received < UPLOAD / 8 ? 'little of it' : 'a part of it'
  void share
  return `${status}, and ${isKept ? 'stays' : 'ends'}`
}

function late(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000))
}
