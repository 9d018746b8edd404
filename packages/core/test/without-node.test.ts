import { build, type BuildOptions } from 'esbuild'
import { join } from 'node:path'
import { createContext, runInContext } from 'node:vm'

/*
 * The core entry, the HTTP helpers and the memory store run where there is nothing of Node. Their bundle is searched for
 * what only Node has, and is run without it.
 */

const CORE = join(__dirname, '../src')
const HTTP = join(__dirname, '../../http/src')

/** All of both entries, as every export is kept. What must not begin while modules are loaded is in `run`. */
const PROGRAM = `
  import * as core from '@sluice/core'
  import * as http from '@sluice/http'

  const { createLimiter, createSemaphore, memoryStore } = core
  const day = { limit: 2, window: '1d' }
  const factories = ['fixedWindow', 'slidingLog', 'slidingWindow', 'tokenBucket', 'leakyBucket', 'gcra']
  const store = memoryStore()
  const limiters = factories.map((name) => createLimiter({ name, policies: [core[name](day)], store }))
  const pacer = createLimiter({ policies: [core.gcra({ limit: 1, window: '20ms' })] })
  const semaphore = createSemaphore({ limit: 1 })
  const guard = http.createGuard(
    { name: 'edge', limit: 1, window: '1m', store, headers: ['x-ratelimit', 'ietf'], key: http.byApiKey('x-api-key') },
    {
      identity: (req) => req,
      address: () => '::ffff:192.0.2.1',
      socketAddress: () => '192.0.2.1',
      header: (req, name) => req.headers[name],
      headersSent: () => false,
      setHeader: (res, name, value) => void (res.headers[name] = value),
      setStatus: (res, status) => void (res.status = status),
      send: (_req, res, problem) => void (res.body = JSON.stringify(problem)),
      onFinished: (_req, _res, listener) => listener(),
      proxySetting: '',
      handlerFrame: /(?!)/,
    },
  )
  const ask = async (headers) => {
    const [req, res] = [{ headers }, { status: 200, headers: {} }]
    await guard(req, res)
    return res
  }

  everything = { core, http }
  run = async () => {
    const admitted = []
    for (const limiter of limiters) {
      let count = 0
      for (let i = 0; i < 4; i++) if ((await limiter.consume('x'.repeat(200))).allowed) count++
      admitted.push(count)
    }
    await pacer.acquire('caller')
    const { waitMs } = await pacer.acquire('caller')
    const permit = await semaphore.acquire()
    const waiting = semaphore.acquire('', { maxWait: '10s' })
    await permit.release()
    const decision = await limiters[3].consume('other')
    const settled = [await decision.settle(0), (await limiters[3].peek('other')).remaining]
    const responses = [await ask({ 'x-api-key': 'key' }), await ask({ 'x-api-key': 'key' }), await ask({})]
    const failure = await pacer.consume('caller', { cost: -1 }).catch((error) => error)
    const waited = (await waiting).allowed
    await Promise.all([...limiters, pacer, semaphore, store].map((each) => each.close()))
    return { admitted, waited, waitMs, settled, responses, failure: [failure.name, failure.code] }
  }
`

const TARGETS: Readonly<Record<string, BuildOptions>> = {
  browser: { platform: 'browser' },
  workerd: {
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: ['workerd', 'worker', 'browser'],
  },
}

describe.each(Object.entries(TARGETS))('bundled for %s', (_, target) => {
  it('imports nothing of Node and reads no global of Node without a guard', async () => {
    const { text, external } = await bundle(target, NO_NODE)
    expect(external).toEqual([])
    expect(text.match(/.*GLOBAL_OF_NODE.*/g)).toBeNull()
  })

  it('runs without anything of Node, and begins nothing while modules are loaded', async () => {
    const { text } = await bundle(target, { minify: true })
    const runtime = new Runtime()
    const { everything, run } = runtime.load(text)
    expect(Object.keys(everything.core)).toContain('createLimiter')
    expect(Object.keys(everything.http)).toContain('createGuard')
    runtime.serves = true
    const { responses, waitMs, ...rest } = await run()
    expect(rest).toEqual({
      admitted: [2, 2, 2, 2, 2, 2],
      waited: true,
      settled: [expect.closeTo(-1, 3), 2],
      failure: ['InputError', 'INVALID_COST'],
    })
    expect(waitMs).toBeGreaterThan(0)
    expect(responses.map(({ status }) => status)).toEqual([200, 429, 200])
    const epoch = Number(responses[1]!.headers['X-RateLimit-Reset'])
    expect(Math.abs(epoch - Date.now() / 1000 - 60)).toBeLessThan(30)
    expect(responses[1]!.headers['RateLimit']).toMatch(/^"edge";r=0;t=\d+$/)
    expect(runtime.warnings).toEqual([expect.stringContaining('[API_KEY_MISSING]')])
  })
})

async function bundle(target: BuildOptions, more: BuildOptions = {}) {
  const { outputFiles, metafile, warnings } = await build({
    ...target,
    ...more,
    stdin: { contents: PROGRAM, resolveDir: __dirname },
    alias: {
      '@sluice/core': join(CORE, 'index.ts'),
      '@sluice/core/internal': join(CORE, 'internal.ts'),
      '@sluice/http': join(HTTP, 'index.ts'),
    },
    bundle: true,
    format: 'iife',
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
  expect(warnings).toEqual([])
  const imports = Object.values(metafile.inputs).flatMap((input) => input.imports)
  const external = imports.filter((each) => each.external).map(({ path }) => path)
  return { text: outputFiles[0]!.text, external }
}

/**
 * Each global of Node becomes a text. A branch that a guard (`typeof process === 'object'`) opens is then dead, and esbuild
 * leaves it out; what is left of the text is read without a guard.
 */
const NO_NODE: BuildOptions = {
  minifySyntax: true,
  define: Object.fromEntries(
    [
      'process',
      'Buffer',
      'require',
      'module',
      'global',
      'setImmediate',
      'clearImmediate',
      '__dirname',
      '__filename',
    ].flatMap((name) =>
      [name, `globalThis.${name}`].map((place) => [place, JSON.stringify(`GLOBAL_OF_NODE ${name}`)]),
    ),
  ),
}

interface Loaded {
  readonly everything: { readonly core: object; readonly http: object }
  readonly run: () => Promise<{
    readonly responses: readonly { readonly status: number; readonly headers: Record<string, string> }[]
    readonly waitMs: number
  }>
}

/**
 * A realm with what browsers and workerd have. As in workerd, the clock stands at 0 while modules are loaded, its origin is
 * that of wall time, and timers and random numbers are refused until requests are served. WeakRef is missing, as it is in
 * workerd under compatibility dates before May 2025.
 */
class Runtime {
  serves = false
  readonly warnings: string[] = []

  load(text: string): Loaded {
    const globals: Record<string, unknown> = {
      AbortController,
      AbortSignal,
      clearTimeout: (id: number) => clearTimeout(timers.get(id)),
      console: { warn: (warning: string) => this.warnings.push(warning) },
      crypto: {
        getRandomValues: (array: Uint8Array) =>
          this.#serving('random numbers') && crypto.getRandomValues(array),
      },
      performance: { now: () => this.#now() },
      queueMicrotask,
      TextEncoder,
      setTimeout: (act: () => void, ms: number) =>
        this.#serving('a timer') && timers.set(++ids, setTimeout(act, ms)) && ids,
      wallTime: () => this.#now(),
    }
    const timers = new Map<number, NodeJS.Timeout>()
    let ids = 0
    const context = createContext(globals)
    runInContext('Date.now = wallTime; delete globalThis.WeakRef', context)
    runInContext(text, context)
    return globals as unknown as Loaded
  }

  #now(): number {
    return this.serves ? Date.now() : 0
  }

  #serving(what: string): true {
    if (!this.serves) throw new Error(`${what} at module scope`)
    return true
  }
}
