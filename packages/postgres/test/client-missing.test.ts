import { build } from 'esbuild'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { onePostgres } from './one-postgres.js'

jest.setTimeout(60_000)

const own = onePostgres()
const folder = mkdtempSync(join(tmpdir(), 'sluice-client-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Prints what a call over a store from a URL ends with. */
const PROGRAM = `
  import { createLimiter, gcra } from '@sluice/core'
  import { postgresStore } from '@sluice/postgres'
  async function main() {
    const store = postgresStore(process.argv[2])
    const policies = [gcra({ limit: 5, window: '1d' })]
    const limiter = createLimiter({ name: 'a', policies, store, onStoreError: 'throw', deadline: '10s' })
    console.log(await limiter.consume('k').then(({ remaining }) => remaining, ({ code, message }) => code + ' ' + message))
    await store.close()
  }
  void main()
`

/** The program in a folder where only some clients are installed. */
async function outcomeWith(...clients: readonly string[]): Promise<string> {
  const modules = join(folder, 'node_modules')
  rmSync(modules, { recursive: true, force: true })
  mkdirSync(modules)
  const from = dirname(dirname(createRequire(__filename).resolve('pg/package.json')))
  for (const client of clients) symlinkSync(join(from, client), join(modules, client))
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(folder, 'program.cjs'),
    own.server.url,
  ])
  return stdout.trim()
}

beforeAll(async () => {
  const packages = join(__dirname, '../..')
  await build({
    stdin: { contents: PROGRAM, resolveDir: __dirname },
    alias: {
      '@sluice/core/internal': join(packages, 'core/src/internal.ts'),
      '@sluice/core/store': join(packages, 'core/src/stores/authoring.ts'),
      '@sluice/core': join(packages, 'core/src/index.ts'),
      '@sluice/postgres': join(packages, 'postgres/src/index.ts'),
    },
    outfile: join(folder, 'program.cjs'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    packages: 'bundle',
    external: ['pg', 'postgres', 'ioredis', 'iovalkey', 'redis'],
    logLevel: 'error',
  })
})

describe('a store from a URL', () => {
  it('says what to install where there is no client', async () => {
    expect(await outcomeWith()).toMatch(/^CLIENT_MISSING .*npm install pg \(or postgres\)/)
  })

  it.each([['pg'], ['postgres']])('decides with %s alone, and ends with its store', async (client) => {
    await own.pool.query('drop table if exists sluice')
    expect(await outcomeWith(client)).toBe('4')
  })
})
