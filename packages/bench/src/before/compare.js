// npm run bench -- before [ref] [--dir PATH] [--memory] [--machine] [--queue] [--http] [--redis] [--postgres] [--bar 0.95] [--rounds 31] [--only REGEX]
// Compares this build with that of another commit (default: HEAD~1), or with a checkout that is built already.
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { loadNow, machine } from '../figures/machine.js'
import { markdownOf } from '../figures/table.js'
import { buildOf, commitOf, isChanged, root } from './builds.js'
import { inMemory, onMachine, overHttp, queued } from './in-process.js'
import { overPostgres } from './postgres.js'
import { overRedis } from './redis.js'
import { tableOf, verdictOf } from './rows.js'

/** With the titles of their tables. */
const parts = {
  memory: { title: 'In memory, CPU a call', measure: inMemory },
  machine: { title: 'With the store of one machine, CPU a call', measure: onMachine },
  queue: { title: 'Calls that a queue runs, CPU a call', measure: queued },
  http: { title: 'Requests to Express, without a socket, CPU a request', measure: overHttp },
  redis: { title: 'Over Redis', measure: overRedis },
  postgres: { title: 'Over Postgres', measure: overPostgres },
}
const names = /** @type {(keyof typeof parts)[]} */ (Object.keys(parts))

/**
 * Prints the comparison.
 * @param {readonly string[]} args
 * @returns {Promise<number>} the exit code: 1 where a path missed the bar
 */
export async function compare(args) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      dir: { type: 'string' },
      memory: { type: 'boolean' },
      redis: { type: 'boolean' },
      postgres: { type: 'boolean' },
      machine: { type: 'boolean' },
      queue: { type: 'boolean' },
      http: { type: 'boolean' },
      bar: { type: 'string', default: '0.95' },
      rounds: { type: 'string', default: '31' },
      only: { type: 'string', default: '' },
    },
  })
  const bar = positive('bar', values.bar)
  const rounds = positive('rounds', values.rounds)
  const only = new RegExp(values.only)
  if (positionals.length > (values.dir ? 0 : 1))
    throw new Error(`one commit or one --dir is compared with, got ${positionals.join(', ')}`)
  const start = performance.now()
  const load = loadNow()
  const commit = commitOf(values.dir ? 'HEAD' : (positionals[0] ?? 'HEAD~1'), values.dir)
  print(`this: ${commitOf('HEAD')}${isChanged() ? ' with changes' : ''}; before: ${commit}`)
  print(`${machine()}, Node ${process.versions.node}; load average before the run: ${load.toFixed(1)}`)
  const roots = { this: root, before: values.dir ? resolve(values.dir) : buildOf(commit) }
  /** @type {import('../figures/verdict.js').Verdict[]} */
  const verdicts = []
  const chosen = names.filter((name) => values[name])
  for (const name of chosen.length > 0 ? chosen : names) {
    const { title, measure } = parts[name]
    const say = (/** @type {string} */ line) => void process.stderr.write(`${name}: ${line}\n`)
    const rows = await measure({ roots, rounds, wanted: (path) => only.test(path), say })
    if (rows.length === 0) continue
    print(`\n## ${title}\n\n${markdownOf(tableOf(title, rows, bar))}`)
    verdicts.push(...rows.map((row) => verdictOf(row, bar)))
  }
  const count = (/** @type {import('../figures/verdict.js').Verdict} */ one) =>
    verdicts.filter((verdict) => verdict === one).length
  const seconds = Math.round((performance.now() - start) / 1000)
  print(`\n${count('met')} met, ${count('missed')} missed, ${count('not shown')} not shown; ${seconds} s`)
  return count('missed') > 0 ? 1 : 0
}

/** @param {string} name @param {string} text */
function positive(name, text) {
  const value = Number(text)
  if (!(value > 0)) throw new Error(`--${name} must be a number above 0, got ${text}`)
  return value
}

/** @param {string} line */
function print(line) {
  process.stdout.write(`${line}\n`)
}
