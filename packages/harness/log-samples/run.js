// Makes the samples of logs anew that programs of Debian and npm write, and prints the version of each: npm run verify --
// log-samples [NAME...]. Each program answers the same twelve requests of three callers on loopback; what it has logged then goes
// into packages/cli/test/samples, which a test reads. Exit 1 where a program cannot be had or writes nothing.
import { freePort, until } from '@sluice/harness/redis'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import { join, resolve } from 'node:path'
import { setTimeout as later } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../../../scripts/temporary-folder.js'
import { listens, versionOfPackage } from '../../../scripts/verify/started.js'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const SAMPLES = resolve(HERE, '../../cli/test/samples')
/** Callers and what they ask for: 12 calls of 3, of which 2 are answered 429 and 1 with 500. */
const CALLS = [
  ['127.0.0.2', '/a?b=c'],
  ['127.0.0.2', '/limited'],
  ['127.0.0.3', '/a'],
  ['127.0.0.2', '/b'],
  ['127.0.0.4', '/fails'],
  ['127.0.0.3', '/limited'],
  ...Array.from({ length: 6 }, (_, i) => [`127.0.0.${2 + (i % 3)}`, `/page/${i}`]),
]

/** A process that is one of Debian's. @param {string} program @param {string[]} args */
const debian = (program, ...args) => ({ program, args })

const CGI =
  '#!/bin/sh\ncase "$REQUEST_URI" in /limited*) echo "Status: 429";; /fails*) echo "Status: 500";; esac\nprintf "Content-Type: text/plain\\n\\nhello\\n"\n'
const APACHE =
  (format) =>
  ({ folder, port }) => ({
    files: {
      'apache.conf': `ServerRoot ${folder}\nServerName shop.example\nListen 127.0.0.1:${port}\nPidFile ${folder}/pid
${['mpm_event', 'authz_core', 'alias'].map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
ErrorLog ${folder}/error\nDocumentRoot ${folder}\n<Directory ${folder}>\nRequire all granted\n</Directory>
Redirect 429 /limited\nRedirect 500 /fails\nLogFormat "${format}" chosen\nCustomLog ${folder}/out chosen\n`,
    },
    ...debian('apache2', '-DFOREGROUND', '-f', join(folder, 'apache.conf')),
  })
const NGINX =
  (format, error = 'error') =>
  ({ folder, port }) => ({
    files: {
      'nginx.conf': `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/${error}; events {} http { ${format}
client_body_temp_path ${folder}/1; proxy_temp_path ${folder}/2; fastcgi_temp_path ${folder}/3; uwsgi_temp_path ${folder}/4; scgi_temp_path ${folder}/5;
server { listen 127.0.0.1:${port}; root ${folder}; location /limited { return 429; } location /fails { return 500; } location / { return 200 hello; } location /page/1 { } } }`,
    },
    ...debian('nginx', '-p', folder, '-c', join(folder, 'nginx.conf')),
  })
const HAPROXY = ({ folder, port }) => ({
  files: {
    'haproxy.cfg': `global\n log stdout format raw local0\ndefaults\n mode http\n log global\n option httplog\n timeout client 5s\n timeout server 5s\n timeout connect 5s
frontend web\n bind 127.0.0.1:${port}\n http-request return status 429 if { path /limited }\n http-request return status 500 if { path /fails }\n http-request return status 200 content-type text/plain string hello\n`,
  },
  ...debian('haproxy', '-f', join(folder, 'haproxy.cfg')),
})
const CADDY = ({ folder, port }) => ({
  files: {
    Caddyfile: `{\n admin off\n auto_https off\n storage file_system ${folder}/data\n}\nhttp://:${port} {\n bind 127.0.0.1\n log\n handle /limited {\n  respond 429\n }\n handle /fails {\n  reverse_proxy 127.0.0.1:1\n }\n handle {\n  respond hello\n }\n}\n`,
  },
  ...debian('caddy', 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'),
})
const LIGHTTPD = ({ folder, port }) => ({
  files: {
    'lighttpd.conf': `server.modules = ("mod_accesslog", "mod_cgi")\nserver.document-root = "${folder}"\nserver.port = ${port}\nserver.bind = "127.0.0.1"\naccesslog.filename = "${folder}/out"\nserver.errorlog = "${folder}/error"\ncgi.assign = ( "" => "" )\nserver.error-handler-404 = "/hello.cgi"\n`,
    'hello.cgi': CGI,
  },
  ...debian('lighttpd', '-D', '-f', join(folder, 'lighttpd.conf')),
})
const SQUID =
  (format) =>
  ({ folder, port }) => ({
    files: {
      'squid.conf': `http_port 127.0.0.1:${port} accel defaultsite=shop.example\ncache_peer 127.0.0.1 parent ${port + 1} 0 no-query originserver\nacl all_paths urlpath_regex .\nhttp_access allow all_paths\naccess_log stdio:${folder}/out ${format}\ncache_log ${folder}/error\npid_filename ${folder}/pid\ncache deny all\nlogfile_rotate 0\ncoredump_dir ${folder}\nshutdown_lifetime 0 seconds\n`,
    },
    ...debian('squid', '-N', '-n', `sluice${port}`, '-f', join(folder, 'squid.conf')),
    behind: true,
  })
const VARNISH = ({ folder, port }) => ({
  files: {
    'varnish.vcl': `vcl 4.1; backend none none; sub vcl_recv { if (req.url ~ "^/limited") { return (synth(429)); } if (req.url ~ "^/fails") { return (synth(500)); } return (synth(200)); }`,
  },
  ...debian(
    'varnishd',
    '-F',
    '-n',
    join(folder, 'varnish'),
    '-a',
    `127.0.0.1:${port}`,
    '-f',
    join(folder, 'varnish.vcl'),
  ),
  reader: ['varnishncsa', '-n', join(folder, 'varnish')],
})
/** Node with an application of this folder. @param {string} logger */
const node =
  (logger) =>
  ({ port }) => ({
    program: process.execPath,
    args: [join(HERE, 'app.cjs'), logger, String(port)],
    files: {},
  })

/** By sample: what runs, and what says its version. @type {Record<string, [plan: (place: { folder: string, port: number }) => object, from: string]>} */
const PROGRAMS = {
  'nginx-combined': [NGINX('access_log FOLDER/out;'), 'nginx'],
  'nginx-with-errors': [NGINX('access_log FOLDER/out;', 'out'), 'nginx'],
  'nginx-json': [
    NGINX(
      `log_format chosen escape=json '{"time":"$time_iso8601","client":"$remote_addr","request":"$request","status":$status,"request_time":$request_time}'; access_log FOLDER/out chosen;`,
    ),
    'nginx',
  ],
  'apache-combined': [
    APACHE('%h %l %u %t \\"%r\\" %>s %O \\"%{Referer}i\\" \\"%{User-Agent}i\\"'),
    'apache2',
  ],
  'apache-vhost-combined': [
    APACHE('%v:%p %h %l %u %t \\"%r\\" %>s %O \\"%{Referer}i\\" \\"%{User-Agent}i\\"'),
    'apache2',
  ],
  lighttpd: [LIGHTTPD, 'lighttpd'],
  haproxy: [HAPROXY, 'haproxy'],
  caddy: [CADDY, 'caddy'],
  varnish: [VARNISH, 'varnish'],
  squid: [SQUID('squid'), 'squid'],
  'squid-combined': [SQUID('combined'), 'squid'],
  ...Object.fromEntries(
    ['combined', 'common', 'dev', 'short', 'tiny'].map((form) => [
      `morgan-${form}`,
      [node(`morgan-${form}`), 'morgan'],
    ]),
  ),
  'morgan-in-pino': [node('morgan-in-pino'), 'pino'],
  'pino-http': [node('pino-http'), 'pino-http'],
  fastify: [node('fastify'), 'fastify'],
  bunyan: [node('bunyan'), 'bunyan'],
  winston: [node('winston'), 'express-winston'],
  'pm2-logs': [PM2, 'pm2'],
}

/** An application under PM2, whose `pm2 logs` is the sample. */
function PM2({ folder, port }) {
  const pm2 = join(HERE, 'node_modules/pm2/bin/pm2')
  const env = { ...process.env, PM2_HOME: join(folder, 'pm2') }
  const run = (...args) =>
    spawnSync(process.execPath, [pm2, ...args], { env, stdio: 'ignore', timeout: 20_000 })
  run('start', join(HERE, 'app.cjs'), '--name', 'shop', '--', 'morgan-combined', String(port))
  return {
    program: process.execPath,
    args: [pm2, 'logs', '--lines', '0', '--timestamp'],
    env,
    files: {},
    end: () => run('kill'),
  }
}

await main(process.argv.slice(2))

/** @param {string[]} asked */
async function main(asked) {
  const path = join(SAMPLES, 'samples.json')
  const known = JSON.parse(fs.readFileSync(path, 'utf8'))
  for (const [name, [plan, from]] of Object.entries(PROGRAMS)) {
    if (asked.length > 0 && !asked.includes(name)) continue
    const text = await logOf(plan)
    if (text.trim() === '') throw new Error(`${name} has logged nothing`)
    fs.writeFileSync(join(SAMPLES, `${name}.txt`), text)
    known[name] = { ...known[name], by: `${from} ${versionOf(from)}` }
    console.log(`${name}: ${known[name].by}, ${text.trim().split('\n').length} lines`)
  }
  const sorted = Object.entries(known).sort(([one], [other]) => (one < other ? -1 : 1))
  fs.writeFileSync(path, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`)
}

/** The version of one of npm's packages, or of Debian's. @param {string} name */
function versionOf(name) {
  const manifest = join(HERE, 'node_modules', name, 'package.json')
  if (fs.existsSync(manifest)) return JSON.parse(fs.readFileSync(manifest, 'utf8')).version
  return /[\d.]*\d/.exec(versionOfPackage(name))?.[0]
}

/** Runs a program, sends it the calls, ends it, and returns what it has logged: in `out` of its folder, or on its stdout. */
async function logOf(plan) {
  const folder = temporaryFolder('log')
  fs.chmodSync(folder, 0o777) // for programs that drop the rights of root
  const port = await freePort()
  const { program, args, files, env = process.env, end, reader, behind } = plan({ folder, port })
  for (const [name, text] of Object.entries(files))
    fs.writeFileSync(join(folder, name), text.replaceAll('FOLDER', folder), { mode: 0o755 })
  const origin = behind && http.createServer(answer).listen(port + 1, '127.0.0.1')
  const children = []
  let printed = ''
  const start = (command, options) => {
    const child = spawn(command, options, { env, cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (piece) => (printed += children.at(-1) === child ? piece : ''))
    child.on('error', (error) => (printed += error.message))
    children.push(child)
  }
  start(program, args)
  try {
    await until(`${program} on port ${port}`, () => listens(port), 10_000)
    if (reader) printed = ''
    if (reader) start(reader[0], reader.slice(1))
    if (reader || end) await later(2000)
    for (const [address, target] of CALLS) await get(port, address, target)
    await later(1000) // for programs that write their log later
  } finally {
    end?.()
    for (const child of children.reverse()) {
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGTERM'))
        await Promise.race([once(child, 'exit'), later(5000)])
      child.kill('SIGKILL')
    }
    origin?.close()
  }
  const out = join(folder, 'out')
  const text = fs.existsSync(out) ? fs.readFileSync(out, 'utf8') : printed
  return text.replaceAll(folder, '/srv').replaceAll(resolve(HERE, '../../..'), '/srv')
}

/** The origin behind a cache. */
function answer(req, res) {
  res.statusCode = { '/limited': 429, '/fails': 500 }[req.url] ?? 200
  res.end('hello')
}

/** Asks once, from a loopback address of this caller's, and waits for the whole answer. */
function get(port, localAddress, path) {
  return new Promise((done, fail) => {
    const headers = { host: 'shop.example', 'user-agent': 'curl/8.5.0' }
    http
      .get({ port, host: '127.0.0.1', path, localAddress, headers, agent: false }, (res) =>
        res.resume().on('end', done),
      )
      .on('error', fail)
      .setTimeout(5000, () => fail(new Error(`no answer to ${path}`)))
  })
}
