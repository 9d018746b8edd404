import { createLimiter, gcra } from '@sluice/core'
import { redisStore } from '@sluice/core/redis'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { apiKeyKey } from '@sluice/http'
import { denialId } from '@sluice/metrics'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

/*
 * The transcript on a store in docs/cli.md: its commands, as they stand there, print what stands there. The table and the example of
 * logs on that page are held by `npm run check -- cli`.
 */

const PAGE = readFileSync(resolve(__dirname, '../cli.md'), 'utf8')
const TRANSCRIPT = /^```text\n(\$ npx sluice why --id [^]*?)^```/m.exec(PAGE)![1]!
const SECRET = 'b7e151628aed2a6abf7158809cf4f3c7'
const KEY = apiKeyKey('key-of-ann')

let server: RedisServer
let folder: string
beforeAll(async () => {
  server = await startRedis()
  folder = mkdtempSync(join(tmpdir(), 'sluice-test-'))
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

it('the transcript on a store is what its commands print', async () => {
  const url = `redis://${server.host}:${server.port}`
  const store = redisStore(url)
  const policies = [gcra({ limit: 1, window: '1h' })]
  const limiter = createLimiter({ name: 'api', policies, store, deadline: '10s', onStoreError: 'throw' })
  while ((await limiter.consume(KEY)).allowed);
  await limiter.close()
  await store.close()
  const entry = { algorithm: 'gcra', limit: 1, window: '1h' }
  writeFileSync(join(folder, 'policies.json'), JSON.stringify({ limiters: { api: { policies: [entry] } } }))
  const id = denialId(SECRET, { limiter: 'api', storedKey: KEY, at: Date.now() })
  const env = { ...process.env, SLUICE_STORE: url, SLUICE_SECRET: SECRET }
  const printed: string[] = []
  for (const [line, command = ''] of TRANSCRIPT.matchAll(/^\$ npx (sluice .*)$/gm)) {
    const given = command.replace(/(?<=urn:sluice:denial:)\w+/, id).replaceAll(CUT, KEY)
    const text = `${resolve('node_modules/.bin')}/${given}`
    const { stdout } = await promisify(execFile)('bash', ['-c', text], { cwd: folder, env })
    printed.push(`${line}\n`, stdout)
  }
  expect(asShown(printed.join(''))).toBe(withoutTimes(TRANSCRIPT))
})

const CUT = `${KEY.slice(0, 16)}...`

/** A text as the page shows it: keys are cut, and the user of this machine is another. */
function asShown(text: string): string {
  return withoutTimes(text)
    .replaceAll(KEY, CUT)
    .replaceAll(`${userInfo().username}@${hostname()}`, 'ann@laptop')
}

function withoutTimes(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
}
