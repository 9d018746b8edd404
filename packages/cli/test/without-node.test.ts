import { build } from 'esbuild'
import { join } from 'node:path'

it('the reader, suggest and replay import nothing of Node', async () => {
  const external: string[] = []
  const packages = join(__dirname, '../..')
  await build({
    entryPoints: [join(packages, 'cli/src/index.ts')],
    bundle: true,
    write: false,
    platform: 'browser',
    alias: {
      '@sluice/core': join(packages, 'core/src/index.ts'),
      '@sluice/http': join(packages, 'http/src/index.ts'),
      '@sluice/policies': join(packages, 'policies/src/index.ts'),
      '@sluice/core/internal': join(packages, 'core/src/internal.ts'),
      '@sluice/core/store': join(packages, 'core/src/stores/authoring.ts'),
    },
    plugins: [
      {
        name: 'externals',
        setup: ({ onResolve }) =>
          onResolve({ filter: /^node:/ }, ({ path }) => {
            external.push(path)
            return { path, external: true }
          }),
      },
    ],
  })
  expect(external).toEqual([])
})
