import { createLimiter, gcra } from '@sluice/core'
import { type OtherParty, startOtherParty } from '@sluice/harness/servers'
import axios from 'axios'
import { readFileSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { Agent, request } from 'undici'
import { limitAxios, limitFetch, limitUndici, type OutboundOptions } from '../src/index.js'
import { type Form, FORMS } from './forms.js'

/*
 * Each form with each client, over each way to send a body. The table of docs/outbound-clients.md is made of what happened:
 * `WRITE_FORMS=1 npx jest forms` writes it.
 */
const PAGE = join(__dirname, '../../../docs/outbound-clients.md')
const BETWEEN = /(?<=<!-- forms -->\n)[^]*(?=<!-- end -->)/

type Send = (url: string) => Promise<{ readonly status: number; readonly text: string }>

const agent = new Agent()
const CLIENTS: Record<string, (options: OutboundOptions) => Send> = {
  fetch: (options) => {
    const limited = limitFetch(fetch, options)
    return async (url) => {
      const response = await limited(url)
      return { status: response.status, text: await response.text() }
    }
  },
  axios: (options) => {
    const adapter = limitAxios(axios.getAdapter('http'), options)
    const client = axios.create({ adapter, validateStatus: () => true, responseType: 'text' })
    return async (url) => {
      const { status, data } = await client.get<string>(url)
      return { status, text: data }
    }
  },
  undici: (options) => {
    const dispatcher = agent.compose(limitUndici(options))
    return async (url) => {
      const { statusCode, headers, body } = await request(url, { dispatcher })
      const bytes = Buffer.from(await body.arrayBuffer())

      const text = headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes
      return { status: statusCode, text: text.toString() }
    }
  },
}

const WAYS: Record<string, (res: ServerResponse, status: number, headers: object, text: string) => void> = {
  plain: (res, status, headers, text) =>
    res.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(text) }).end(text),
  chunked(res, status, headers, text) {
    res.writeHead(status, { ...headers }).write(text.slice(0, 9))
    setImmediate(() => res.end(text.slice(9)))
  },
  gzip(res, status, headers, text) {
    const packed = gzipSync(text)
    res.writeHead(status, { ...headers, 'content-encoding': 'gzip' }).write(packed.subarray(0, 9))
    setImmediate(() => res.end(packed.subarray(9)))
  },
}

const limiter = createLimiter({ policies: [gcra({ limit: 1000, window: '1s' })] })
let other: OtherParty
/** What the provider sends for a path. */
const answers = new Map<string, (res: ServerResponse) => void>()

beforeAll(async () => {
  other = await startOtherParty((_, res, req) => {
    res.sendDate = false // a form with an instant has its own
    answers.get(req.url!)!(res)
  })
  jest.spyOn(Math, 'random').mockReturnValue(1)
})
afterAll(async () => {
  jest.restoreAllMocks()
  other.close()
  await agent.destroy()
  await limiter.close()
})
/** What the replies of one form mean to a client: as `Form.means`. Two calls are made, one after the other. */
async function meaningOf(form: Form, client: string, way: string): Promise<Form['means']> {
  const path = `/${FORMS.indexOf(form)}/${client}/${way}`
  const text = form.body === undefined ? 'a text of some length' : JSON.stringify(form.body)
  const type = form.body === undefined ? {} : { 'content-type': 'application/json; charset=utf-8' }
  answers.set(path, (res) => WAYS[way]!(res, form.status, { ...type, ...form.headers }, text))
  let means: Form['means'] = 'nothing'
  const send = CLIENTS[client]!({
    limiter,
    key: path,
    retries: 0,
    onEvent(event) {
      if (event.type === 'held' && means === 'nothing') means = event.holdMs
      if (event.type === 'done' && event.givenUp === 'final') means = 'final'
    },
    ...form.options,
  })
  for (let call = 0; call < 2 && typeof means !== 'number'; call++) {
    expect(await send(other.origin + path)).toEqual({ status: form.status, text })
  }
  return means
}

const rows: string[] = []
const shown = (means: Form['means']): string =>
  typeof means === 'string'
    ? { nothing: 'nothing', final: 'final, nothing held' }[means]
    : `held ${means / 1000} s`

it.each(FORMS)('$name', async (form) => {
  const cells: string[] = []
  for (const client of Object.keys(CLIENTS)) {
    const found = []
    for (const way of Object.keys(WAYS)) found.push([way, await meaningOf(form, client, way)] as const)
    expect([client, ...found]).toEqual([client, ...Object.keys(WAYS).map((way) => [way, form.means])])
    cells.push(found.map(([way]) => way).join(', '))
  }
  rows.push(`| ${[form.name, form.by, shown(form.means), ...cells].join(' | ')} |`)
})

it('stands in the page', () => {
  const head = ['| form | sent by | means | fetch | axios | undici |', '|---|---|---|---|---|---|']
  const table = `${[...head, ...rows].join('\n')}\n`
  const page = readFileSync(PAGE, 'utf8')
  if (process.env['WRITE_FORMS'])
    writeFileSync(
      PAGE,
      page.replace(BETWEEN, () => table),
    )
  expect(readFileSync(PAGE, 'utf8').match(BETWEEN)?.[0]).toBe(table)
})
