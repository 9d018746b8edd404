// Law 4: a lie that is planted is found, and named. The checks are those that end the build, which has found nothing.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../scripts/temporary-folder.js'
import { brokenLinks, missingExports, staleFigures, unknownOptions } from '../checks.js'
import { filesOf } from '../pages.js'

/** Where each is planted, what stands there, what is to, and how it is named. */
const LIES = /** @type {[path: string, from: RegExp, to: string, named: RegExp][]} */ ([
  ['site/dist/http.html', /<\/main>/, '<a href="nowhere.html">x</a>$&', /nowhere\.html leads nowhere/],
  ['site/dist/start.html', /<\/main>/, '<a href="errors.html#no_code">x</a>$&', /#no_code leads to no/],
  ['docs/api/core/functions/createLimiter.md', /createLimiter/g, 'other', /core exports createLimiter/],
  ['docs/http.md', /\| `policies` \|/, '| `polices` |', /no option polices/],
  ['docs/benchmarks/memory.md', /\d(?= \|)/, '$&7', /memory\.md:\d+ is not what/],
])

const COPIED = 'docs packages README.md CHANGELOG.md site/pages site/generated site/dist'.split(' ')

/** @param {import('../verify.js').Part} part */
export async function verify({ check }) {
  const root = temporaryFolder('lies')
  const filter = (/** @type {string} */ from) =>
    !/node_modules|packages\/\w+\/(?:dist|test)\b|fixtures/.test(from)
  for (const path of COPIED) cpSync(path, join(root, path), { recursive: true, filter })
  for (const [path, from, to] of LIES) {
    const text = readFileSync(join(root, path), 'utf8')
    if (text.search(from) < 0) throw new Error(`nothing was planted in ${path}`)
    writeFileSync(join(root, path), text.replace(from, to))
  }
  const after = [
    ...brokenLinks(join(root, 'site/dist')),
    ...missingExports(root),
    ...unknownOptions(root, filesOf(root)),
    ...(await staleFigures(root)),
  ]
  rmSync(root, { recursive: true })
  for (const [, , , named] of LIES) {
    const problem = after.find((each) => named.test(each))
    check(problem !== undefined, `planted and named: ${problem ?? named}`)
  }
}
