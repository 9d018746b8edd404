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
    async (_, snippet) => expect(await outputBesideOthers(snippet)).toBe(''),
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

/** The output of a compiled snippet where it failed, otherwise nothing. */
async function outputOf(file: string): Promise<string> {
  const { failed, output } = await runAll([file])
  return failed ? output : ''
}

/**
 * The snippets of each page, or of each package, that have run without error, one after the other in one process: most of what a
 * process costs is to load the packages. A snippet that is not among them is run alone, and that decides.
 */
const ranTogether = new Map<string, Promise<ReadonlySet<string>>>()

async function outputBesideOthers({ name, file, code }: Snippet): Promise<string> {
  if (changesTheProcess(code)) return outputOf(file)
  const place = placeOf(name)
  if (!ranTogether.has(place)) ranTogether.set(place, runTogether(place))
  return (await ranTogether.get(place)!).has(file) ? '' : outputOf(file)
}

async function runTogether(place: string): Promise<ReadonlySet<string>> {
  const own = RUNNING.filter(
    (each) =>
      placeOf(each.name) === place &&
      !usesRedis(each) &&
      !usesPostgres(each) &&
      !changesTheProcess(each.code),
  )
  const { output } = await runAll(own.map(({ file }) => file))
  return new Set(Array.from(output.matchAll(/^RAN (.+)$/gm), ([, file]) => file!))
}

/** Whether a snippet would be felt by those after it. */
function changesTheProcess(code: string): boolean {
  return /\b(?:installFakeClock|process|globalThis|jest|mock)\b/.test(code)
}

/** The package that a snippet stands in, or the page where it stands in none. */
function placeOf(name: string): string {
  return /^packages\/\w+/.exec(name)?.[0] ?? name.slice(0, name.lastIndexOf(':'))
}

/** Runs compiled snippets, each of which is named once it has run. Fails with the last one that does. */
function runAll(files: readonly string[]): Promise<{ failed: boolean; output: string }> {
  const runs = files.map((file) => [file, pathToFileURL(pathOf(file)).href])
  const script = `
    let code = 0
    for (const [file, url] of ${JSON.stringify(runs)}) {
      try {
        await import(url)
        console.log('\\nRAN ' + file)
      } catch (error) {
        console.error(error)
        code = 1
      }
    }
    process.exit(code)`
  return node(['--input-type=module', '--unhandled-rejections=strict', '-e', script])
}

function node(args: readonly string[]): Promise<{ failed: boolean; output: string }> {
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd: ROOT, timeout: 60_000 }, (error, stdout, stderr) =>
      done({ failed: error !== null, output: stdout + stderr }),
    )
  })
}
