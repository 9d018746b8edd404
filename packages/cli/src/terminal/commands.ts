import { digest, nearestTo } from '@sluice/core/internal'
import * as policies from '@sluice/policies'
import { openSync, writeSync } from 'node:fs'
import { text as textOf } from 'node:stream/consumers'
import * as logs from '../index.js'
import { flagOf, type Given, STDIN, STDIN_TWICE, textsOf, usageError } from './arguments.js'
import { parseFailIf } from './fail-if.js'
import { bytesOf, FileShelf, sourcesOf } from './files.js'
import type { Run } from './main.js'
import { readOptionsOf, selectorOf, suggestOptionsOf, valueOf } from './options.js'
import { OTHERS } from './others.gen.js'
import { count, pageOf } from './page.js'
import { printReplay } from './print-replay.js'
import { printSuggest } from './print-suggest.js'

/** The command `sluice suggest`: reads the logs and prints the limits that they suggest. Returns the exit code 0. */
export const suggest: Run = async (paths, given, signal) => {
  const selector = selectorOf(given)
  const options = { ...suggestOptionsOf(given), shelf: new FileShelf(), signal }
  const reading = await logs.readLogs(sourcesOf(paths, signal), readOptionsOf(given, [selector], signal))
  const report = hashed(await logs.suggest(reading, options), given)
  const command = replayCommand(paths, given)
  print(report, given, () => printSuggest(report, selector, command, pageOf(process.stdout)))
  return 0
}

/**
 * The command line that replays the same logs under the suggested policies, for the report to show. It repeats the
 * options of `suggest` that policies.json does not hold. Words with other than harmless characters are quoted for a
 * shell.
 */
function replayCommand(paths: readonly string[], given: Given): string {
  const options = ['cost', 'trustProxy', 'format', 'field', 'skew'].flatMap((name) =>
    textsOf(given, name).flatMap((text) => [flagOf(name), text]),
  )
  const words = [...(paths.length > 0 ? paths : [STDIN]), 'policies.json', ...options]
  const quoted = (word: string) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
  return ['npx @sluice/cli replay', ...words.map(quoted)].join(' ')
}

/**
 * The command `sluice replay`: decides the calls of logs by the policy file, which is the last of the files, and prints
 * who would have been denied. With --against the decisions are compared with another policy file's or the log's own, and
 * with --out each is written to a file. Returns the exit code: 1 if a condition of --fail-if holds, else 0.
 */
export const replay: Run = async (files, given, signal) => {
  if (files.length === 0) throw usageError(`replay needs a policy file ${EXAMPLE}`)
  const conditions = textsOf(given, 'failIf').map((text) => ({ text, holds: parseFailIf(text) }))
  const other = valueOf(given, 'against', String)
  // Without a log, the log is stdin.
  if (files.length === 1 && [files[0], other].includes(STDIN)) throw usageError(STDIN_TWICE)
  const { limiters } = await withoutErrors(files.at(-1)!, signal)
  const against =
    other === undefined || other === 'log' ? other : (await withoutErrors(other, signal)).limiters
  const own = selectorOf(given)
  const all = [...limiters, ...(against === undefined || against === 'log' ? [] : against)]
  const selectors = all.map(({ by = own.by, where = own.where }) => ({ by, where }))
  const out = valueOf(given, 'out', (path) => openSync(path, 'w'))
  /** Writes one decision to the file of --out, as a line of JSON. */
  const write: logs.LogReplayOptions['onDecision'] = (time, limiter, { keys, cost }, decision) => {
    const { allowed, policy, remaining, retryAfterMs } = decision
    const line = { time, limiter, key: keys[0], cost, allowed, policy, remaining, retryAfterMs }
    writeSync(out!, `${JSON.stringify(hashed(line, given))}\n`)
  }
  const read = readOptionsOf(given, selectors, signal)
  const options = { limiters, against, signal, onDecision: out === undefined ? out : write } as const
  const reading = await logs.readLogs(sourcesOf(files.slice(0, -1), signal), read)
  const report = hashed(await logs.replay(reading, options), given)
  print(report, given, () => printReplay(report, pageOf(process.stdout)))
  const failed = conditions.filter((condition) => condition.holds(report))
  for (const { text } of failed) process.stderr.write(`sluice: --fail-if '${text}' holds\n`)
  return failed.length > 0 ? 1 : 0
}

/**
 * The command `sluice check`: prints the errors of a policy file and its smells, which are policies that are allowed but
 * seldom meant. With --against it also prints, as smells, what is lost when the file replaces that other one, such as a
 * limiter. Returns the exit code: 1 for errors, and under --strict for smells too, else 0.
 */
export const check: Run = async ([path = STDIN], given, signal) => {
  const file = policies.readPolicies(await textOf(bytesOf(path, signal, LARGEST)))
  const current = await valueOf(given, 'against', (other) => withoutErrors(other, signal))
  const smells = [...policies.smellsOf(file), ...(current ? policies.changesAgainst(file, current) : [])]
  const problems = [...file.errors, ...smells]
  const sum = `${count(file.errors.length, 'error')}, ${count(smells.length, 'smell')}`
  const text = (): string => [...linesOf(path, problems), sum].join('\n')
  print({ version: 1, command: 'check', file: path, problems }, given, text)
  return file.errors.length > 0 || (given['strict'] === true && smells.length > 0) ? 1 : 0
}

/**
 * A line of text for each problem of a policy file, as compilers print theirs: file, line, severity and code, then the
 * place in the file and the message.
 */
function linesOf(path: string, problems: readonly policies.PolicyProblem[]): string[] {
  const file = path === STDIN ? 'stdin' : path
  return problems.map(({ line, path: at, severity, code, message }) => {
    return `${file}:${line}: ${severity} ${code}${at === '' ? '' : ` at ${at}`}: ${message}`
  })
}

/**
 * Reads a policy file that must have no errors, for a command that needs its policies. A text that does not even name
 * `limiters` is probably a log that was given in its place.
 * @throws {Error} EPOLICIES with a line for each error.
 */
async function withoutErrors(path: string, signal: AbortSignal): Promise<policies.ReadPolicies> {
  const text = await textOf(bytesOf(path, signal, LARGEST))
  const file = policies.readPolicies(text)
  if (file.errors.length === 0) return file
  if (!text.includes('"limiters"')) throw usageError(`expected a policy file ${EXAMPLE}, got '${path}'`)
  throw Object.assign(new Error(linesOf(path, file.errors).join('\n')), { code: 'EPOLICIES' })
}

/** The address of the docs, as far as they are published: while it is empty no address is printed. */
const DOCS: string = ''

/**
 * The command `sluice option`: prints what an option, a method or a class of another package is called here, for each package
 * that has one of this name. Returns the exit code 0, or 1 where none has it.
 */
export const option: Run = async ([name = ''], given) => {
  const plain = (text: string): string => text.toLowerCase().replace(/\(.*/s, '')
  const found = OTHERS.filter(([other]) => plain(other!) === plain(name))
  const near =
    found.length === 0
      ? nearestTo(
          name,
          OTHERS.map(([other]) => other!),
        )
      : undefined
  const rows = found.map(([other, from, page, here]) => ({
    name: other,
    package: from,
    here: here!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'),
    ...(DOCS && { address: `${DOCS}/migrate/${page}` }),
  }))
  const none = `no other package is known to have '${name}'${near === undefined ? '' : `; did you mean '${near}'?`}`
  const lines = rows.map(({ here, address, ...row }) =>
    [`${row.package}  ${row.name}`, here, address].filter(Boolean).join('\n  '),
  )
  print({ version: 1, command: 'option', rows }, given, () => lines.join('\n') || none)
  return rows.length > 0 ? 0 : 1
}

/** Of a policy file no more bytes are read: where a log stands in its place, it may be larger than memory. */
const LARGEST = 2 ** 24

const EXAMPLE = "behind the logs, as in 'sluice replay access.log policies.json'"

/**
 * The report as it may be shown. With --hash-keys each caller's key is replaced by the first 16 digits of its digest, and
 * quoted lines of the log (`text`) are left out, as they contain keys too.
 */
function hashed<T>(report: T, given: Given): T {
  if (given['hashKeys'] !== true) return report
  /**
   * Says for JSON.stringify what is written in place of a value of the report, by the name of its field: a digest for a
   * caller's key, by which his entries can still be told from others', and a remark for a quoted line of the log (`text`).
   */
  const replaced = (name: string, value: unknown): unknown => {
    if (name === 'text') return '(left out by --hash-keys)'
    return name === 'key' ? `sha256:${digest(String(value)).slice(0, 16)}` : value
  }
  return JSON.parse(JSON.stringify(report, replaced)) as T
}

/**
 * Prints a report: as one line of JSON under --json, else the text that `text` makes. On a terminal it first clears the
 * line that shows the progress.
 */
function print(report: object, given: Given, text: () => string): void {
  if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  process.stdout.write(`${given['json'] === true ? JSON.stringify(report) : text()}\n`)
}
