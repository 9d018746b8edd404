// Runs every row of docs/migrate on the other package and on Sluice: npm run verify -- migrate [PAGE...]. Exit 1 where a row is
// not as its page says, or its script would pass without the option.
import { startRedis } from '@sluice/harness/redis'
import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { faultsOf, readPages } from './migrate/pages.js'

const PAGE = fileURLToPath(new URL('migrate/run-page.js', import.meta.url))
const chosen = process.argv.slice(2)
const pages = readPages().filter(
  ({ file }) => chosen.length === 0 || chosen.includes(file.replace('.md', '')),
)
const redis = await startRedis({ args: ['--databases', '32'] })
const counts = { same: 0, differs: 0, none: 0 }
let faults = 0

for (const page of pages) {
  const written = faultsOf(page)
  const results = written.length > 0 ? [] : await run(page.file)
  const none = page.tables.flatMap(({ rows }) => rows).filter(({ kind }) => kind === 'none').length
  const count = (/** @type {string} */ kind) => results.filter((each) => each.kind === kind).length
  counts.none += none
  counts.same += count('same')
  counts.differs += count('differs')
  console.log(`${page.file.padEnd(28)}${count('same')} same, ${count('differs')} differ, ${none} none`)
  for (const fault of [
    ...written,
    ...results.flatMap(({ title, faults }) => faults.map((each) => `${title}: ${each}`)),
  ]) {
    console.log(`  ${fault}`)
    faults++
  }
}
await redis.stop()
console.log(
  `\n${counts.same} rows the same, ${counts.differs} differ as shown, ${counts.none} none, ${faults} wrong`,
)
process.exitCode = faults > 0 ? 1 : 0

/**
 * In a process of its own, as packages keep timers and connections.
 * @param {string} file
 * @returns {Promise<readonly import('./migrate/run-page.js').Result[]>}
 */
async function run(file) {
  const child = spawn(process.execPath, [...process.execArgv, PAGE, file, String(redis.port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const found = await text(child.stdout)
  if (found === '') throw new Error(`${file} could not be run`)
  return JSON.parse(found)
}
