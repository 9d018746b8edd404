import { build } from 'esbuild'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

jest.setTimeout(60_000)

const SOURCES = join(__dirname, '../../../src')
const folder = mkdtempSync(join(tmpdir(), 'sluice-missing-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Prints how calls over two stores end. Each may wait for minutes, longer than this test, and ends at once. */
const PROGRAM = `
  import { createLimiter, createSemaphore, gcra } from './index.js'
  import { redisStore } from './stores/redis/index.js'
  const codeOf = (promise) => promise.then(() => 'none', ({ code }) => code)
  const warnings = []
  process.on('warning', ({ name, code, message }) => warnings.push({ name, code, message }))
  async function main() {
    const [eager, lazy] = [redisStore('redis://h'), redisStore('redis://h', { lazy: true })]
    const policies = [gcra({ limit: 1, window: '1s' })]
    const of = (store, onStoreError) => createLimiter({ name: 'a', policies, store, onStoreError, deadline: '10s' })
    const codes = {
      consume: await codeOf(of(lazy).consume('k')),
      allow: await codeOf(of(lazy, 'allow').consume('k')),
      acquire: await codeOf(of(eager, 'throw').acquire('k', { maxWait: '5m' })),
      permit: await codeOf(createSemaphore({ name: 'a', limit: 1, store: eager }).acquire('k', { maxWait: '5m' })),
      ready: await codeOf(eager.ready()),
      lazy: await codeOf(lazy.ready()),
    }
    await new Promise((resolve) => setImmediate(resolve)) // warnings are emitted between turns
    await Promise.all([eager.close(), lazy.close()])
    console.log(JSON.stringify({ codes, warnings }))
  }
  void main()
`

it('rejects ready() and every call at once where no client package is installed, and warns the process once', async () => {
  const outfile = join(folder, 'program.cjs')
  const stdin = { contents: PROGRAM, resolveDir: SOURCES, loader: 'ts' as const }
  const external = ['ioredis', 'iovalkey', 'redis']
  await build({ stdin, outfile, bundle: true, platform: 'node', format: 'cjs', external })
  const { stdout } = await promisify(execFile)(process.execPath, [outfile])
  const missing = 'CLIENT_MISSING'
  expect(JSON.parse(stdout)).toEqual({
    codes: {
      consume: missing,
      allow: missing,
      acquire: missing,
      permit: missing,
      ready: missing,
      lazy: missing,
    },
    warnings: [
      {
        name: 'SluiceWarning',
        code: missing,
        message: expect.stringContaining('npm install ioredis (or iovalkey, or redis)'),
      },
    ],
  })
})
