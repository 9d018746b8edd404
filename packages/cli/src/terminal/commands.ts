import type { Decision } from '@sluice/core'
import { digest } from '@sluice/core/internal'
import { changesAgainst, type Problem, readPolicies, type ReadPolicies, smellsOf } from '@sluice/policies'
import { createWriteStream, readFileSync } from 'node:fs'
import {
  type Call,
  readLogs,
  replay as replayCalls,
  type Selector,
  suggest as suggestLimits,
} from '../index.js'
import { parseFailIf } from './fail-if.js'
import { FileShelf, sourcesOf, STDIN } from './files.js'
import type { Run } from './main.js'
import {
  type Given,
  readOptionsOf,
  selectorOf,
  suggestOptionsOf,
  textsOf,
  UsageError,
  valueOf,
} from './options.js'
import { pageOf } from './page.js'
import { printReplay } from './print-replay.js'
import { printSuggest } from './print-suggest.js'

export const suggest: Run = async (logs, given, signal) => {
  const options = suggestOptionsOf(given)
  const selector = selectorOf(given)
  const shelf = new FileShelf()
  try {
    const report = await reported(logs, given, [selector], signal, (reading) =>
      suggestLimits(reading, { ...options, shelf, signal }),
    )
    print(report, given, () =>
      printSuggest(report, selector, replayCommand(logs, given), pageOf(process.stdout)),
    )
    return 0
  } finally {
    shelf.close()
  }
}

/** With the options of `suggest` that the policy file does not hold. */
function replayCommand(logs: readonly string[], given: Given): string {
  const flags = { cost: 'cost', trustProxy: 'trust-proxy', format: 'format', field: 'field', skew: 'skew' }
  const options = Object.entries(flags).flatMap(([name, flag]) =>
    textsOf(given, name).map((text) => `--${flag} ${text}`),
  )
  return [
    'npx @sluice/cli replay',
    ...(logs.length > 0 ? logs : [STDIN]).map((log) => (log === STDIN ? '-' : log)),
    'policies.json',
    ...options,
  ].join(' ')
}

export const replay: Run = async (files, given, signal) => {
  if (files.length === 0) throw new UsageError('replay takes logs and, last, a policy file')
  const conditions = textsOf(given, 'failIf').map(parseFailIf)
  const { limiters } = withoutErrors(files.at(-1)!)
  const against = valueOf(given, 'against', (path) =>
    path === 'log' ? ('log' as const) : withoutErrors(path).limiters,
  )
  const own = selectorOf(given)
  const all = against === undefined || against === 'log' ? limiters : [...limiters, ...against]
  const selectors = all.map(({ by = own.by, where = own.where }) => ({ by, where }))
  const out = valueOf(given, 'out', (path) => createWriteStream(path))
  const isHashed = given['hashKeys'] === true
  const write = (time: string, limiter: string, { keys, cost }: Call, decision: Decision): void => {
    const { allowed, policy, remaining, retryAfterMs } = decision
    const key = isHashed ? hashOf(keys[0]!) : keys[0]
    out!.write(`${JSON.stringify({ time, limiter, key, cost, allowed, policy, remaining, retryAfterMs })}\n`)
  }
  const options = { limiters, against, signal, onDecision: out && write }
  const report = await reported(files.slice(0, -1), given, selectors, signal, (reading) =>
    replayCalls(reading, options),
  )
  out?.end()
  print(report, given, () => printReplay(report, pageOf(process.stdout)))
  const failed = conditions.filter((condition) => condition.holds(report))
  for (const { text } of failed) process.stderr.write(`sluice: --fail-if '${text}' holds\n`)
  return failed.length > 0 ? 1 : 0
}

export const check: Run = async ([path = STDIN], given) => {
  const file = readPolicies(textOf(path))
  const current = valueOf(given, 'against', withoutErrors)
  const problems = [...file.errors, ...smellsOf(file), ...(current ? changesAgainst(file, current) : [])]
  const [errors, smells] = [file.errors.length, problems.length - file.errors.length]
  const text = (): string =>
    [...problems.map((problem) => lineOf(path, problem)), `${errors} errors, ${smells} smells`].join('\n')
  print({ version: 1, command: 'check', file: path, problems }, given, text)
  return errors > 0 || (given['strict'] === true && smells > 0) ? 1 : 0
}

function lineOf(file: string, { line, path, severity, code, message }: Problem): string {
  return `${file === STDIN ? 'stdin' : file}:${line}: ${severity} ${code}${path === '' ? '' : ` at ${path}`}: ${message}`
}

function textOf(path: string): string {
  return readFileSync(path === STDIN ? 0 : path, 'utf8')
}

/** The policies of a file. One with errors is unreadable. */
function withoutErrors(path: string): ReadPolicies {
  const file = readPolicies(textOf(path))
  if (file.errors.length === 0) return file
  throw Object.assign(new Error(file.errors.map((problem) => lineOf(path, problem)).join('\n')), {
    code: 'EPOLICIES',
  })
}

/** Reads logs and makes a report of them. On a terminal the bytes that were read are shown each second. */
async function reported<Report>(
  paths: readonly string[],
  given: Given,
  selectors: readonly Selector[],
  signal: AbortSignal,
  make: (reading: Awaited<ReturnType<typeof readLogs>>) => Promise<Report>,
): Promise<Report> {
  let read = 0
  const show = (): boolean => process.stderr.write(`\r${Math.round(read / 1e6)} MB read `)
  const timer = process.stderr.isTTY ? setInterval(show, 1000) : undefined
  try {
    const report = await make(
      await readLogs(
        sourcesOf(paths, signal, (bytes) => (read += bytes)),
        readOptionsOf(given, selectors, signal),
      ),
    )
    return given['hashKeys'] === true ? (JSON.parse(JSON.stringify(report, withHashes)) as Report) : report
  } finally {
    clearInterval(timer)
    if (timer) process.stderr.write('\r\u001b[K')
  }
}

/** Replaces keys, and the texts of lines, which have them too. */
function withHashes(name: string, value: unknown): unknown {
  if (name === 'text') return '(left out by --hash-keys)'
  return name === 'key' ? hashOf(String(value)) : value
}

function hashOf(key: string): string {
  return `sha256:${digest(key).slice(0, 16)}`
}

function print(report: object, given: Given, text: () => string): void {
  process.stdout.write(`${given['json'] === true ? JSON.stringify(report) : text()}\n`)
}
