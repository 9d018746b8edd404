import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type RedisServer, startRedis } from '@sluice/testing/redis'
import { runs, snippetsOf } from './snippets.js'

const ROOT = resolve(__dirname, '../..')
const SNIPPETS = snippetsOf(ROOT)

/** What strangers compile with: strict, and nothing of this repository's own. */
const TSCONFIG = {
  compilerOptions: {
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    types: ['node'],
    module: 'nodenext',
    strict: true,
    skipLibCheck: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    outDir: 'out',
  },
  include: ['*.ts'],
}

let folder: string
let redis: RedisServer
let output: string

beforeAll(async () => {
  // Inside of the repository, where the packages are found as in an application that has installed them.
  folder = mkdtempSync(join(__dirname, '.snippets-'))
  for (const { file, code } of SNIPPETS) writeFileSync(join(folder, `${file}.ts`), `${code}\nexport {}\n`)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  redis = await startRedis()
  output = (await node([join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder])).output
}, 60_000)

afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true })
})

describe('a snippet', () => {
  it.each(SNIPPETS.map((snippet) => [snippet.name, snippet] as const))(
    '%s compiles in strict TypeScript',
    (_, { file }) => {
      const errors = output.split('\n').filter((line) => line.includes(`${file}.ts(`))
      expect(errors).toEqual([])
    },
  )

  it.each(SNIPPETS.filter(runs).map((snippet) => [snippet.name, snippet] as const))(
    '%s runs as pasted',
    async (_, { file }) => {
      const path = join(folder, 'out', `${file}.js`)
      // The one thing that differs from a reader's machine: where Redis listens.
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replaceAll(
          'redis://localhost:6379',
          `redis://${redis.host}:${redis.port}`,
        ),
      )
      const script = `await import('${pathToFileURL(path).href}'); process.exit()`
      const { failed, output } = await node([
        '--input-type=module',
        '--unhandled-rejections=strict',
        '-e',
        script,
      ])
      expect(failed ? output : '').toBe('')
    },
    20_000,
  )

  it('is all that the compiler has something to say about', () => {
    const others = output
      .split('\n')
      .filter((line) => SNIPPETS.every(({ file }) => !line.includes(`${file}.ts`)))
    expect(others.join('')).toBe('')
  })

  it('runs for the most part', () => {
    expect(SNIPPETS.filter(runs).length).toBeGreaterThan(SNIPPETS.length / 2)
  })
})

function node(args: readonly string[]): Promise<{ failed: boolean; output: string }> {
  return new Promise((done) => {
    execFile(process.execPath, args, { cwd: ROOT, timeout: 60_000 }, (error, stdout, stderr) =>
      done({ failed: error !== null, output: stdout + stderr }),
    )
  })
}
