// Runs every case of the adapter kit (packages/harness/src/adapters) on every adapter, and prints the table of
// cases x adapters: npm run verify -- adapters. Exit 1 when a case failed, or an adapter has none of it.
import { spawnSync } from 'node:child_process'

const ADAPTERS = [
  'Express 5',
  'Express 4',
  'Koa',
  'Fastify',
  'Hono',
  'Nest on Express',
  'Nest on Fastify',
  'Node',
  'fetch',
]

/** @typedef {{ ancestorTitles: string[], title: string, status: string, failureMessages: string[] }} Case */
/** @typedef {{ name: string, message: string, assertionResults: Case[] }} TestFile */

/** The result of each adapter in each case: the table's rows. @type {Map<string, Map<string, string>>} */
const table = new Map()
/** @type {string[]} */
const failures = []

runKit().forEach(readResults)
const holes = printTable()
for (const failure of failures) console.error(`\n${failure}`)
process.exitCode = failures.length + holes > 0 ? 1 : 0

/** @returns {TestFile[]} */
function runKit() {
  const args = ['node_modules/jest/bin/jest.js', '--json', '--silent', '--', 'test/kit.*\\.test\\.ts$']
  const { stdout, error } = spawnSync(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'ignore'],
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (error) throw error
  return JSON.parse(stdout).testResults
}

/** @param {TestFile} file */
function readResults({ name, message, assertionResults }) {
  if (assertionResults.length === 0) failures.push(`${name}\n${message}`)
  for (const { ancestorTitles, title, status, failureMessages } of assertionResults) {
    const [adapter = '', ...area] = ancestorTitles
    const [what = '', reason] = title.replace(/\]$/, '').split(' [n/a: ')
    const row = `${area.join(' ')}: ${what}`
    const marks = table.get(row) ?? new Map()
    table.set(row, marks.set(adapter, reason ? `n/a: ${reason}` : status === 'passed' ? '✓' : '✗'))
    if (status === 'failed') failures.push(`${adapter}: ${row}\n${failureMessages[0]}`)
  }
}

/** @returns {number} how many cells hold neither a pass nor a reason. */
function printTable() {
  const width = Math.max(...[...table.keys()].map((row) => row.length))
  const reasons = new Set()
  let holes = 0
  console.log([''.padEnd(width), ...ADAPTERS].join('  '))
  for (const [row, marks] of table) {
    const cells = ADAPTERS.map((adapter) => {
      const mark = marks.get(adapter) ?? ''
      if (mark.startsWith('n/a')) reasons.add(`${adapter}, ${mark}`)
      else if (mark !== '✓') holes++
      return mark.slice(0, 3).padEnd(adapter.length)
    })
    console.log([row.padEnd(width), ...cells].join('  ').trimEnd())
  }
  console.log(`\n${table.size} cases x ${ADAPTERS.length} adapters, ${holes} missing or failed`)
  for (const reason of reasons) console.log(reason)
  return holes
}
