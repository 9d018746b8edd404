// Builds the site, from the root of the repository, and fails where a page would lie. npm run site calls it.
import { cpSync, rmSync } from 'node:fs'
import { brokenLinks, missingExports, staleFigures, unknownOptions } from './checks.js'
import { filesOf } from './pages.js'
import { makePortable } from './portable.js'
import { writeReference } from './reference.js'
import { writeTexts } from './texts.js'

const OUT = 'site/dist'
// By a name that the compiler does not follow: it reads this file where VitePress is not installed.
const { build } = await import(String('vitepress'))

await writeReference()
report([...missingExports('.'), ...unknownOptions('.', filesOf('.')), ...(await staleFigures('.'))])
rmSync(OUT, { recursive: true, force: true })
await build('site')
makePortable(OUT)
cpSync('site/404.html', `${OUT}/404.html`) // VitePress's own needs to know the base
writeTexts(OUT, '.')
report(brokenLinks(OUT))
console.log(`${OUT}: serve it from anywhere`)
process.exit(0) // what measures benchmarks keeps servers ready

/** @param {readonly string[]} problems */
function report(problems) {
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exit(1)
}
