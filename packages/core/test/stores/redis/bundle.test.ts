import { build } from 'esbuild'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type RedisServer, startRedis } from '@sluice/harness/redis'

jest.setTimeout(60_000)

/*
 * A program with core, the Redis store and a client in one file has nothing else to read: no package, no script.
 */
const PROGRAM = `
  import { createLimiter, gcra, slidingLog } from '@sluice/core'
  import { redisStore } from '@sluice/core/redis'
  import { Redis } from 'ioredis'

  const redis = new Redis(process.argv[2], { maxRetriesPerRequest: 0 })
  const policies = [gcra({ limit: 3, window: '1h' }), slidingLog({ limit: 5, window: '1d' })]
  const limiter = createLimiter({ name: process.argv[3], policies, store: redisStore(redis), deadline: '10s' })
  async function main() {
    const allowed = []
    for (let i = 0; i < 5; i++) allowed.push((await limiter.consume('user:1')).allowed)
    console.log(JSON.stringify(allowed))
    redis.disconnect()
  }
  main()
`
const CORE = join(__dirname, '../../../src')
const alias = {
  '@sluice/core': join(CORE, 'index.ts'),
  '@sluice/core/redis': join(CORE, 'stores/redis/index.ts'),
}

describe('a bundle of a program with core and its Redis store', () => {
  let server: RedisServer
  let folder: string
  beforeAll(async () => {
    server = await startRedis()
    folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'))
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
    await server.stop()
  })

  it.each([
    ['esm', 'mjs'],
    ['cjs', 'cjs'],
  ] as const)('limits in a folder with nothing else, as %s', async (format, extension) => {
    const outfile = join(folder, format, `program.${extension}`)
    const stdin = { contents: PROGRAM, resolveDir: __dirname }
    // What is CommonJS in there asks for Node's own modules with require, which a module has not.
    const banner = format === 'esm' ? { js: REQUIRE } : {}
    await build({ stdin, alias, outfile, bundle: true, platform: 'node', format, banner, logLevel: 'silent' })
    expect(readdirSync(join(folder, format))).toEqual([`program.${extension}`])
    const url = `redis://${server.host}:${server.port}`
    const run = promisify(execFile)(process.execPath, [outfile, url, format], {
      cwd: join(folder, format),
      timeout: 30_000,
    })
    expect(JSON.parse((await run).stdout)).toEqual([true, true, true, false, false])
  })
})

const REQUIRE = `import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);`
