// Makes what is published of what the compiler wrote: dist/cjs is CommonJS in packages that are "type": "module", code
// comes without its comments (they are in the types, and were a fifth of the size), and each package has the changelog.
import { transformSync } from 'esbuild'
import { copyFileSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What a stripped file begins with. */
const STRIPPED = '/* MIT */\n'

for (const name of readdirSync('packages')) {
  const dist = `packages/${name}/dist`
  if (!existsSync(`${dist}/cjs`)) continue
  for (const file of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
    if (file.endsWith('.js')) strip(join(dist, file), file.startsWith('cjs'))
  }
  writeFileSync(`${dist}/cjs/package.json`, '{"type":"commonjs"}\n')
  copyFileSync('CHANGELOG.md', `packages/${name}/CHANGELOG.md`)
}

/**
 * Leaves what has been stripped before as it is: the compiler writes only what has changed.
 * @param {string} path
 * @param {boolean} dense without the space that a reader of the other build has.
 */
function strip(path, dense) {
  const code = readFileSync(path, 'utf8')
  if (code.startsWith(STRIPPED)) return
  writeFileSync(path, STRIPPED + transformSync(code, { minifyWhitespace: dense }).code)
}
