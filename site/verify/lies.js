// Law 4: a lie that is planted is found, and named. The checks are those that end the build.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../scripts/temporary-folder.js'
import { brokenLinks, missingExports, staleFigures, unknownOptions } from '../checks.js'
import { filesOf, navigation } from '../pages.js'
import { withPictures } from '../pictures.ts'

/** @returns {Promise<[boolean, string][]>} */
export async function verify() {
  const root = temporaryFolder('lies')
  for (const path of [
    'docs',
    'packages',
    'README.md',
    'CHANGELOG.md',
    'site/pages',
    'site/generated',
    'site/dist',
  ]) {
    cpSync(path, join(root, path), {
      recursive: true,
      filter: (from) => !/node_modules|packages\/\w+\/(?:dist|test)\b|fixtures/.test(from),
    })
  }
  /** @param {string} path @param {(text: string) => string} change */
  const plant = (path, change) => {
    const file = join(root, path)
    const text = readFileSync(file, 'utf8')
    const changed = change(text)
    if (changed === text) throw new Error(`nothing was planted in ${path}`)
    writeFileSync(file, changed)
  }
  const found = async () => [
    ...brokenLinks(join(root, 'site/dist')),
    ...missingExports(root),
    ...unknownOptions(root, filesOf(root)),
    ...(await staleFigures(root)),
    ...thrown(() => navigation(root)),
    ...thrown(() => withPictures(readFileSync(join(root, 'docs/algorithms.md'), 'utf8'), new Map(known))),
  ]
  const before = await found()
  plant('site/dist/http.html', (html) => html.replace('</main>', '<a href="nowhere.html">x</a></main>'))
  plant('site/dist/start.html', (html) =>
    html.replace('</main>', '<a href="errors.html#no_such_code">x</a></main>'),
  )
  plant('docs/api/core/functions/createLimiter.md', (text) => text.replaceAll('createLimiter', 'other'))
  plant('docs/http.md', (text) => text.replace('| `policies` |', '| `polices` |'))
  plant('docs/benchmarks/memory.md', (text) =>
    text.replace(/(\d)(?= \|)/, (digit) => String((Number(digit) + 1) % 10)),
  )
  writeFileSync(join(root, 'docs/lost.md'), '# Lost\n')
  plant('docs/algorithms.md', (text) =>
    text.replace('<!-- playground: gcra -->', '<!-- playground: grca -->'),
  )
  const after = await found()
  rmSync(root, { recursive: true })
  const wanted = [
    /nowhere\.html leads nowhere/,
    /#no_such_code leads to no heading/,
    /core exports createLimiter/,
    /no option polices/,
    /memory\.md:\d+ is not what/,
    /docs\/lost\.md/,
    /no picture 'grca'/,
  ]
  return [
    [before.length === 0, `without a lie nothing is found ${before.join('; ')}`],
    ...wanted.map(
      (form) =>
        /** @type {[boolean, string]} */ ([
          after.some((each) => form.test(each)),
          `planted and named: ${after.find((each) => form.test(each)) ?? String(form)}`,
        ]),
    ),
  ]
}

const known = [
  ...readFileSync('docs/algorithms.md', 'utf8').matchAll(/^<!-- playground: ([\w-]+) -->$/gm),
].map(([, id = '']) => /** @type {[string, string]} */ ([id, '']))

/**
 * @param {() => unknown} check
 * @returns {string[]}
 */
function thrown(check) {
  try {
    check()
    return []
  } catch (error) {
    return [/** @type {Error} */ (error).message]
  }
}
