import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type PostgresServer, startPostgres } from '@sluice/harness/postgres'
import { type RedisServer, startRedis } from '@sluice/harness/redis'
import { runs, type Snippet, snippetsOf, STRANGERS_TSCONFIG } from './snippets.js'

const ROOT = resolve(__dirname, '../..')
const SNIPPETS = snippetsOf(ROOT)

const REDIS_URL = 'redis://localhost:6379'
const RUNNING = SNIPPETS.filter(runs)
const POSTGRES_URL = 'postgres://localhost/app'
const usesRedis = ({ code }: Snippet): boolean => code.includes(REDIS_URL)
const usesPostgres = ({ code }: Snippet): boolean => code.includes(POSTGRES_URL)

let folder: string
let output: string

beforeAll(async () => {
  // Inside of the repository, where the packages are found as in an application that has installed them.
  folder = mkdtempSync(join(__dirname, '.snippets-'))
  for (const { file, code } of SNIPPETS) writeFileSync(join(folder, `${file}.ts`), `${code}\nexport {}\n`)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(STRANGERS_TSCONFIG))
  output = (await node([join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder])).output
}, 60_000)

afterAll(() => rmSync(folder, { recursive: true }))

describe('a snippet', () => {
  it.each(named(SNIPPETS))('%s compiles in strict TypeScript', (_, { file }) => {
    const errors = output.split('\n').filter((line) => line.includes(`${file}.ts(`))
    expect(errors).toEqual([])
  })

  it.each(named(RUNNING.filter((each) => !usesRedis(each) && !usesPostgres(each))))(
    '%s runs as pasted',
    async (_, { file }) => expect(await outputOf(file)).toBe(''),
    20_000,
  )

  it('is all that the compiler has something to say about', () => {
    const others = output
      .split('\n')
      .filter((line) => SNIPPETS.every(({ file }) => !line.includes(`${file}.ts`)))
    expect(others.join('')).toBe('')
  })

  it('runs for the most part', () => {
    expect(RUNNING.length).toBeGreaterThan(SNIPPETS.length / 2)
  })
})

describe('a snippet with Redis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis.stop())

  it.each(named(RUNNING.filter(usesRedis)))(
    '%s runs as pasted',
    async (_, { file }) => {
      // The one thing that differs from a reader's machine: where Redis listens.
      const path = pathOf(file)
      const url = `redis://${redis.host}:${redis.port}`
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(REDIS_URL, url))
      expect(await outputOf(file)).toBe('')
    },
    20_000,
  )
})

describe('a snippet with Postgres', () => {
  let postgres: PostgresServer
  beforeAll(async () => {
    postgres = await startPostgres()
  }, 60_000)
  afterAll(() => postgres?.stop())

  it.each(named(RUNNING.filter(usesPostgres)))(
    '%s runs as pasted',
    async (_, { file }) => {
      const path = pathOf(file)
      writeFileSync(path, readFileSync(path, 'utf8').replaceAll(POSTGRES_URL, postgres.url))
      expect(await outputOf(file)).toBe('')
    },
    20_000,
  )
})

function named(snippets: readonly Snippet[]) {
  return snippets.map((snippet) => [snippet.name, snippet] as const)
}

function pathOf(file: string): string {
  return join(folder, 'out', `${file}.js`)
}

/** Runs a compiled snippet. What it printed where it failed, otherwise nothing. */
async function outputOf(file: string): Promise<string> {
  const script = `await import('${pathToFileURL(pathOf(file)).href}'); process.exit()`
  const { failed, output } = await node([
    '--input-type=module',
    '--unhandled-rejections=strict',
    '-e',
    script,
  ])
  return failed ? output : ''
}

function node(args: readonly string[]): Promise<{ failed: boolean; output: string }> {
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd: ROOT, timeout: 60_000 }, (error, stdout, stderr) =>
      done({ failed: error !== null, output: stdout + stderr }),
    )
  })
}
