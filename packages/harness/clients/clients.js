// The clients of docs/clients.md: what each is made with, and one call. A call gives the status that its caller gets, or throws.
import { DynamoDBClient, ListTablesCommand } from '@aws-sdk/client-dynamodb'
import Anthropic from '@anthropic-ai/sdk'
import * as azure from '@azure/core-rest-pipeline'
import { REST } from '@discordjs/rest'
import { Client as Notion } from '@notionhq/client'
import { Octokit } from '@octokit/core'
import { retry as retryOfOctokit } from '@octokit/plugin-retry'
import { throttling } from '@octokit/plugin-throttling'
import { WebClient } from '@slack/web-api'
import { QueryClient } from '@tanstack/query-core'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import fetchRetry from 'fetch-retry'
import { Gaxios } from 'gaxios'
import got from 'got'
import ky from 'ky'
import makeFetchHappen from 'make-fetch-happen'
import { ofetch } from 'ofetch'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import OpenAI from 'openai'
import * as retryAxios from 'retry-axios'
import Stripe from 'stripe'
import superagent from 'superagent'
import { Agent, request, RetryAgent } from 'undici'
import wretch from 'wretch'
import { retry as retryOfWretch } from 'wretch/middlewares'

const WGET = ['wget', '-q', '-O', '/dev/null', '--server-response', '--tries=3']
/** Processes of clients. @type {Set<import('node:child_process').ChildProcess>} */
export const children = new Set()
const status = (response) => response.status
const axiosWith = (set) => {
  const client = axios.create()
  set(client)
  return client
}
const retrying = { onRateLimit: () => true, onSecondaryRateLimit: () => true }
const silent = ['debug', 'info', 'warn', 'error', 'setLevel', 'setName'].map((name) => [name, () => {}])
const log = { ...Object.fromEntries(silent), getLevel: () => 'error' }
const agent = new RetryAgent(new Agent())
const fetching = fetchRetry(fetch)
const lower = (method) => method.toLowerCase()

async function aws(endpoint) {
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' }
  const client = new DynamoDBClient({ region: 'eu-west-1', credentials, endpoint, logger: log })
  return (await client.send(new ListTablesCommand())).$metadata.httpStatusCode
}

async function query(url, method) {
  const response = await fetch(url, { method })
  if (response.ok) return response.status
  throw Object.assign(new Error('refused'), { status: response.status })
}

async function stripe(url, method) {
  const { hostname, port, pathname } = new URL(url)
  const client = new Stripe('sk_test_1', { protocol: 'http', host: hostname, port, telemetry: false })
  return (await client.rawRequest(method, pathname)).lastResponse.statusCode
}

function overAzure(url, method) {
  const request = azure.createPipelineRequest({ url, method, allowInsecureConnection: true })
  return azure
    .createPipelineFromOptions({})
    .sendRequest(azure.createDefaultHttpClient(), request)
    .then(status)
}

async function notion(url, method) {
  const { origin, pathname } = new URL(url)
  const client = new Notion({ auth: 'test', baseUrl: origin, logger() {} })
  await client.request({ path: pathname.slice(1), method: lower(method) })
  return 200
}

async function discord(url, method) {
  const { origin, pathname } = new URL(url)
  await new REST({ api: origin, version: 'v' }).setToken('test')[lower(method)](pathname)
  return 200
}

/**
 * By name: the package, how it was made, and the call. The five that are used most stand first.
 * @type {Record<string, [from: string, how: string, call: (url: string, method: 'GET' | 'POST') => Promise<number>]>}
 */
// prettier-ignore
export const CLIENTS = {
  'axios-retry': ['axios-retry', '`axiosRetry(axios)`', (url, method) => axiosWith(axiosRetry)({ url, method }).then(status)],
  got: ['got', '`got(url)`', (url, method) => got(url, { method }).then((response) => response.statusCode)],
  gaxios: ['gaxios', '`retry: true`', (url, method) => new Gaxios().request({ url, method, retry: true }).then(status)],
  'AWS SDK': ['@aws-sdk/client-dynamodb', 'as it comes', aws],
  openai: ['openai', 'as it comes', (baseURL, method) => new OpenAI({ apiKey: 'test', baseURL, logLevel: 'off' })[lower(method)]('/').asResponse().then(status)],
  'Node fetch': ['', 'as it comes', (url, method) => fetch(url, { method }).then(status)],
  'undici RetryAgent': ['undici', '`new RetryAgent(agent)`', (url, method) => request(url, { method, dispatcher: agent }).then(({ statusCode }) => statusCode)],
  ky: ['ky', '`ky(url)`', (url, method) => ky(url, { method, timeout: false }).then(status)],
  'retry-axios': ['retry-axios', '`attach(axios)`', (url, method) => axiosWith(retryAxios.attach)({ url, method, raxConfig: {} }).then(status)],
  superagent: ['superagent', '`.retry(2)`', (url, method) => superagent(method, url).retry(2).then(status)],
  ofetch: ['ofetch', '`ofetch(url)`', (url, method) => ofetch.raw(url, { method }).then(status)],
  'fetch-retry': ['fetch-retry', '`fetchRetry(fetch)`', (url, method) => fetching(url, { method }).then(status)],
  wretch: ['wretch', '`middlewares([retry()])`', (url, method) => wretch(url).middlewares([retryOfWretch()])[lower(method)]().res().then(status)],
  'make-fetch-happen': ['make-fetch-happen', '`retry: 2`', (url, method) => makeFetchHappen(url, { method, retry: 2 }).then(status)],
  'TanStack Query': ['@tanstack/query-core', '`fetchQuery`, `retry: 3`', (url, method) => new QueryClient().fetchQuery({ queryKey: [url], retry: 3, queryFn: () => query(url, method) })],
  Anthropic: ['@anthropic-ai/sdk', 'as it comes', (baseURL, method) => new Anthropic({ apiKey: 'test', baseURL, logLevel: 'off' })[lower(method)]('/').asResponse().then(status)],
  Stripe: ['stripe', 'as it comes', stripe],
  'Octokit retry': ['@octokit/plugin-retry', '`Octokit.plugin(retry)`', (url, method) => new (Octokit.plugin(retryOfOctokit))({ log }).request(`${method} ${url}`).then(status)],
  'Octokit throttling': ['@octokit/plugin-throttling', '`plugin(throttling, retry)`, `onRateLimit: () => true`', (url, method) => new (Octokit.plugin(throttling, retryOfOctokit))({ log, throttle: { id: url, ...retrying } }).request(`${method} ${url}`).then(status)],
  'Azure pipeline': ['@azure/core-rest-pipeline', 'as it comes', overAzure],
  Slack: ['@slack/web-api', 'as it comes', (url) => new WebClient('xoxb-test', { slackApiUrl: `${url}/`, logger: log }).apiCall('api.test').then(() => 200)],
  Notion: ['@notionhq/client', 'as it comes', notion],
  Discord: ['@discordjs/rest', 'as it comes', discord],
  // Debian's programs, and packages of its Python.
  curl: ['curl', '`--retry 3`', (url, method) => run('curl', '-s', '-w', '\\n%{http_code}\\n', '--retry', '3', '-X', method, url)],
  wget: ['wget', '`--tries=3`', (url, method) => run(...WGET, `--method=${method}`, url)],
  'wget, 429 named': ['wget', '`--tries=3 --retry-on-http-error=429,503`', (url, method) => run(...WGET, `--method=${method}`, '--retry-on-http-error=429,503', url)],
  urllib3: ['python3-urllib3', '`PoolManager(retries=3)`', python('urllib3', 'urllib3.PoolManager(retries=3).request(method, url).status')],
  'urllib3 Retry': ['python3-urllib3', '`Retry(3, status_forcelist=[429, 503], backoff_factor=1)`', python('urllib3', 'urllib3.PoolManager(retries=urllib3.Retry(3, status_forcelist=[429, 503], backoff_factor=1)).request(method, url).status')],
  httpx: ['python3-httpx', '`HTTPTransport(retries=3)`', python('httpx', 'httpx.Client(transport=httpx.HTTPTransport(retries=3), timeout=60).request(method, url).status_code')],
}

/** Runs a program of Debian for one call. Its status is on a line alone, or in what it says of a response; else it exits with an error. */
async function run(program, ...args) {
  const child = begin(program, args, ['ignore', 'pipe', 'pipe'])
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)])
  children.delete(child)
  const found = [...out.matchAll(/^(\d{3})$/gm), ...error.matchAll(/HTTP\/1.1 (\d{3})/g)].at(-1)
  return statusFrom(found?.[1] ?? `exit ${child.exitCode}`)
}

/** A call of a package of Python: one process makes each call that it reads in a thread, and writes what came of it. */
function python(module, status) {
  const program = `import sys, threading, ${module}
lock = threading.Lock()
def call(url, method):
    try: found = ${status}
    except Exception as error: found = str(error)
    with lock: print(f'{url} {found}'.replace(chr(10), ' '), flush=True)
for line in sys.stdin: threading.Thread(target=call, args=line.split(), daemon=True).start()`
  const waiting = new Map()
  const start = () => {
    const child = begin('/usr/bin/python3', ['-c', program], ['pipe', 'pipe', 'ignore'])
    createInterface({ input: child.stdout }).on('line', (line) => waiting.get(line.split(' ', 1)[0])?.(line))
    return child.stdin
  }
  let calls
  return async (url, method) => {
    calls ??= start()
    calls.write(`${url} ${method}\n`)
    const line = await new Promise((resolve) => waiting.set(url, resolve))
    return statusFrom(/(?<= |many )\d{3}\b/.exec(line.slice(url.length))?.[0] ?? line)
  }
}

function begin(program, args, stdio) {
  const child = spawn(program, args, { stdio })
  children.add(child)
  return child
}

function statusFrom(found) {
  if (found < 400) return found
  throw Object.assign(new Error(found), found >= 400 && { status: Number(found) })
}
