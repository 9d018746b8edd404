import { execFileSync, spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { Project } from './project.js'

const project = new Project()

/** The findings of our own lint rules in these files, a line each: the place, and what is wrong. */
function lint(files: Readonly<Record<string, readonly string[]>>): string[] {
  const typeNames = { shared: ['RateLimitOptions'], replaced: { Rule: 'policy' } }
  const rules = {
    'sluice/owned-promises': 'error',
    'sluice/own-fields': 'error',
    'sluice/algorithm-names': 'error',
    'sluice/portable': 'error',
    'sluice/promises': 'error',
    'sluice/type-names': ['error', typeNames],
    'unicorn/filename-case': 'error',
  }
  const options = {
    plugins: ['unicorn'],
    jsPlugins: [resolve('scripts/lint/plugin.js')],
    categories: { correctness: 'off' },
    rules,
  }
  project.write({ 'lint.json': options })
  for (const [path, lines] of Object.entries(files)) project.write({ [path]: lines.join('\n') })
  const oxlint = resolve('node_modules/oxlint/bin/oxlint')
  const args = [oxlint, '--config', 'lint.json', '--format', 'unix', ...Object.keys(files)]
  const { stdout } = spawnSync(process.execPath, args, { cwd: project.folder, encoding: 'utf8' })
  return stdout
    .split('\n')
    .filter((line) => /^\S+:\d+:\d+: /.test(line))
    .map((line) => line.replace(/:\d+: /, ': ').replace(/ \[.*\]$/, ''))
    .toSorted()
}

describe('lint', () => {
  it('finds what Windows lacks, in code and not in comments', () => {
    const found = lint({
      'a.js': [
        "const folder = '/tmp/a'",
        'read(`/proc/${pid}/stat`)',
        "child.kill('SIGSTOP')",
        "process.on('SIGHUP', end)",
        "spawn('npm', ['ci'])",
        "execFileSync('bash', ['-c', line])",
        'new URL(name, import.meta.url).pathname',
        "process.kill(1, 'SIGTERM') // as in '/tmp/a', where SIGHUP",
        "/* '/tmp' */ spawn('node', ['a/tmp'])",
      ],
    })
    expect(found).toEqual([
      'a.js:1: a folder of Unix: os.tmpdir() and node:path know the right one',
      'a.js:2: a folder of Unix: os.tmpdir() and node:path know the right one',
      'a.js:3: a signal that Windows lacks',
      'a.js:4: a signal that Windows lacks',
      'a.js:5: a batch file on Windows: scripts/npm.js',
      'a.js:6: a shell of Unix',
      'a.js:7: begins with a slash on Windows: fileURLToPath, import.meta.dirname',
    ])
  })

  it('finds promises that void hides, where the file says that they are some', () => {
    const found = lint({
      'a.ts': [
        'class A {',
        '  async #run() { setTimeout(() => void this.#run(), 1) }',
        '  ask(): Promise<void> { return this.#run() }',
        '  tell(): void {}',
        '  constructor(readonly giveUp: (error?: unknown) => Promise<void>) {}',
        '}',
        'const ask = () => void a.ask()',
        'const end = () => void a.giveUp()',
        'const go = () => void a.b.then(end)',
        'const gone = () => void a.ask().catch(end)',
        'const both = () => void a.b.then(end, end)',
        'const tell = () => void a.tell()',
      ],
    })
    const needs = 'returns a promise, which needs an owner: a catch that says why'
    expect(found).toEqual(['2: run', '7: ask', '8: giveUp', '9: then'].map((each) => `a.ts:${each} ${needs}`))
  })

  it('finds fields that another class than that of the object writes', () => {
    const wrong = [
      'other.a = 1',
      'other.a.b ||= 1',
      'this.other.a = 1',
      'this.#own.a++',
      'delete other.a',
      'other!.a = 1',
      "other['a'] = 1",
      ';(other as Another).a = 1',
      'this.find().a = 1',
      ';[other.a, this.a] = pair',
      ';({ b: other.a = 1, ...this.a } = pair)',
      ';[...other.a] = pair',
      'for (other.a of pair) go()',
      'Another.count++',
      'made.a = 1',
    ]
    const right = [
      'this.a = this.#own = 1',
      'this.a++',
      'other.#own = 1',
      'A.count++',
      'record.a = 1',
      'this.list[0] = list[i] = by[name] = 1',
      'const { a } = other',
      'other.set(other.a === 1)',
      ';[this.a, a] = pair',
    ]
    const found = lint({
      'a.ts': [
        'const record: Row = { a: 1 } as Row; const made = new Another(); class A { static count = 0; #own = 1; run(other: A) {',
        ...wrong,
        ...right,
        '} }',
      ],
    })
    const lines = found.map((line) => Number(line.split(':')[1])).toSorted((a, b) => a - b)
    expect(lines).toEqual(wrong.map((_, i) => i + 2))
    expect(found).toContain('a.ts:2: other.a is written from outside: its class has to do that')
  })

  it('finds promises that are told by their class, or by a `then` that may be anything', () => {
    const wrong = [
      'made instanceof Promise',
      'made instanceof globalThis.Promise',
      'made instanceof NativePromise',
      'run instanceof AsyncFunction',
      'made.constructor === Promise',
      'Object.getPrototypeOf(made) !== Promise.prototype',
      "made.constructor.name === 'Promise'",
      "run.constructor.name === 'AsyncFunction'",
      "toString.call(made) === '[object Promise]'",
      'types.isPromise(made)',
      'util.types.isAsyncFunction(run)',
      'Promise.prototype.isPrototypeOf(made)',
      'Promise[Symbol.hasInstance](made)',
      "'then' in made",
      "typeof made.then === 'function'",
      "typeof made?.['then'] === 'function'",
      '!made.then',
      'made?.then && made.then(go)',
      'made.then ? 1 : 2',
      'if (made.then) go()',
      "switch (name) { case 'AsyncFunction': go() }",
      "import { isPromise as is } from 'node:util/types'",
    ]
    const right = [
      'isPromise(made)',
      "'allowed' in made",
      "penalty.then === 'fresh'",
      'made.then(go)',
      'Promise.resolve(made).catch(go)',
      'made instanceof PromiseLikely // instanceof Promise',
    ]
    const found = lint({ 'a.js': [...wrong, ...right] })
    const lines = found.map((line) => Number(line.split(':')[1])).toSorted((a, b) => a - b)
    expect(lines).toEqual(wrong.map((_, i) => i + 1))
    expect(found.every((line) => line.includes('a promise is what has a callable `then`'))).toBe(true)
  })

  it('finds names of types that stand for two things, and those that the glossary replaces', () => {
    const found = lint({
      'a.ts': ['export interface Key {}', 'export class Rules {}', 'export type RateLimitOptions = 1'],
      'b.ts': ['export type Key = string', 'interface Ruler {}', 'export type RateLimitOptions = 2'],
    })
    expect(found).toHaveLength(2)
    expect(found).toContain("a.ts:2: Rules is named by 'Rule': the glossary has policy")
    // Files are linted in any order.
    expect(found.join()).toMatch(
      /a\.ts:1: Key is declared in b\.ts too|b\.ts:1: Key is declared in a\.ts too/,
    )
  })

  it('finds what decides by the name of an algorithm, and no default', () => {
    const found = lint({
      'a.js': [
        "if (name === 'sliding-log') a()",
        "if ('sliding-window-weighted' !== title) a()",
        "switch (name) { case 'tokenBucket': a() }",
        "title.startsWith('fixed-window')",
        "a(['gcra', 'x'].includes(name))",
        'a(/^(gcra|leaky-bucket)/.test(name))',
        "new Set(['gcra'])",
        "new Map([['fixed-window', 1]])",
        "const algorithm = given ?? 'gcra' // as in name === 'tokenBucket', slidingLog",
        "name === 'log'; new Set(['window']); list.includes('a')",
      ],
    })
    expect(found.map((line) => line.slice(0, 52))).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8].map((line) =>
        `a.js:${line}: the name of an algorithm is compared: an algo`.slice(0, 52),
      ),
    )
  })

  it('finds lists of algorithms, whatever they are written in', () => {
    const found = lint({
      'a.js': ["import { gcra, slidingLog } from 'core'", "list('tokenBucket')"],
      'b.js': ['const all = `limits=gcra(1)&limits=slidingLog(2)&limits=fixedWindow(3)`'],
      'c.js': [
        "import { gcra, slidingLog } from 'core' // nor tokenBucket",
        "a('token-bucket', 'tokenBuckets')",
      ],
    })
    expect(found).toEqual([
      "a.js:1: 3 algorithms are listed by hand: read a registry, or the kit's shapes",
      "b.js:1: 3 algorithms are listed by hand: read a registry, or the kit's shapes",
    ])
  })

  it('finds names of sources that differ by upper and lower case alone', () => {
    expect(lint({ 'Store.ts': [''] })).toEqual([expect.stringContaining('Store.ts:1')])
  })
})

describe('names of files', () => {
  const options = ['-z', '--cached', '--others', '--exclude-standard']
  const names = execFileSync('git', ['ls-files', ...options], { encoding: 'utf8' })
    .split('\0')
    .filter(Boolean)
  /** Characters, ends and devices that Windows has otherwise, and paths too long for a folder of usual length. */
  const wrong = /[<>:"\\|?*\p{Cc}]|[. ](?:\/|$)|(?:^|\/)(?:con|prn|aux|nul|com\d|lpt\d)(?:[./]|$)|.{181}/iu

  it('are such as Windows has', () => {
    expect(names.filter((name) => wrong.test(name))).toEqual([])
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length)
  })

  it.each(['a:b.txt', 'what?.md', 'src/aux.ts', 'COM1', 'docs./a.md', 'a ', `${'long/'.repeat(36)}ab`])(
    'are not such as %s',
    (name) => expect(name).toMatch(wrong),
  )
})
