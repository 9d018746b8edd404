import { build } from 'esbuild'
import { resolve } from 'node:path'
import { runInNewContext } from 'node:vm'

const ROOT = resolve(__dirname, '../../..')

/** An application of one route behind a limit of one, which answers with the statuses of two requests. */
const ENTRY = `
  import { Hono } from 'hono'
  import { byApiKey, rateLimit } from './packages/hono/src/index.ts'
  const app = new Hono()
    .use(rateLimit({ limit: 1, window: '1m', key: byApiKey(), shouldCharge: (c) => c.res.status < 400 }))
    .get('/', (c) => c.text('served'))
  const ask = async () => {
    const response = await app.request('/', { headers: { 'X-API-Key': 'key' } })
    return [response.status, await response.text()]
  }
  done = ask().then(async (first) => [first, await ask()])
`

describe.each(['browser', 'neutral'] as const)('bundled for %s', (platform) => {
  it('the adapter needs nothing of Node', async () => {
    const { outputFiles, metafile, warnings } = await build({
      stdin: { contents: ENTRY, resolveDir: ROOT },
      absWorkingDir: ROOT,
      alias: {
        '@sluice/core': './packages/core/src/index.ts',
        '@sluice/core/internal': './packages/core/src/internal.ts',
        '@sluice/http': './packages/http/src/index.ts',
      },
      platform,
      mainFields: ['module', 'main'],
      bundle: true,
      format: 'iife',
      metafile: true,
      write: false,
    })
    const imports = Object.values(metafile.inputs).flatMap((input) => input.imports)
    expect(imports.filter(({ external }) => external)).toEqual([])
    expect(warnings).toEqual([])

    const globals: Record<string, unknown> = { console: undefined }
    for (const name of WEB) globals[name] = globalThis[name]
    runInNewContext(outputFiles[0]!.text, globals)
    expect(await globals['done']).toEqual([
      [200, 'served'],
      [429, expect.stringContaining('quota-exceeded')],
    ])
  })
})

/** What every runtime of Hono has; no process, no Buffer, no require. */
const WEB = [
  'AbortController',
  'AbortSignal',
  'Headers',
  'Request',
  'Response',
  'TextDecoder',
  'TextEncoder',
  'TransformStream',
  'URL',
  'clearTimeout',
  'crypto',
  'performance',
  'queueMicrotask',
  'setTimeout',
] as const
