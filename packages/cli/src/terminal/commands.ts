import { digest, nearestTo } from '@sluice/core/internal'
import * as policies from '@sluice/policies'
import { openSync, writeSync } from 'node:fs'
import { text as textOf } from 'node:stream/consumers'
import * as logs from '../index.js'
import { flagOf, type Given, quoted, STDIN, STDIN_TWICE, optionTexts, usageError } from './arguments.js'
import { parseFailIf } from './fail-if.js'
import { asJson, bold, type TextLine, print } from './door.js'
import { bytesOf, FileShelf, refuseOverwriting, sourcesOf } from './files.js'
import type { Run } from './main.js'
import { maxUnreadOf, readOptionsOf, selectorOf, suggestOptionsOf, optionOf } from './options.js'
import { count, pageOf, percent } from './page.js'
import { LARGEST, linesOf, withoutErrors } from './policy-files.js'
import { printReplay } from './print-replay.js'
import { printSuggest } from './print-suggest.js'

/** The command `sluice suggest`: reads the logs and prints the limits that they suggest. Returns the exit code. */
export const suggest: Run = async (paths, given, signal) => {
  const selector = selectorOf(given)
  refuseOverwriting(paths.length > 0 ? paths : [STDIN], given)
  maxUnreadOf(given)
  const options = suggestOptionsOf(given)
  const reading = await logs.readLogs(sourcesOf(paths, signal), readOptionsOf(given, [selector], signal))
  const shelf = new FileShelf()
  const suggested = await logs.suggest(reading, { ...options, shelf, signal }).finally(() => shelf.close())
  const report = hashed(suggested, given)
  const command = replayCommand(paths, given)
  return printReport(report, given, () => printSuggest(report, selector, command, pageOf(process.stdout)))
}

/**
 * The command line that replays the same logs under the suggested policies, for the report to show. It repeats the options of
 * `suggest` that policies.json does not hold. Words that a shell might change are quoted.
 */
function replayCommand(paths: readonly string[], given: Given): string {
  const options = ['cost', 'callers', 'trustProxy', 'format', 'field', 'skew', 'maxUnread'].flatMap((name) =>
    optionTexts(given, name).flatMap((text) => [flagOf(name), text]),
  )
  const hashing = given['hashKeys'] === true ? ['--hash-keys'] : []
  const words = [...(paths.length > 0 ? paths : [STDIN]), 'policies.json', ...options, ...hashing]
  return ['npx @sluice/cli replay', ...words.map(quoted)].join(' ')
}

/**
 * The command `sluice replay`: decides the calls of logs by the policy file, which is the last of the `files`, and prints who
 * would have been denied. With --against the decisions are compared with those of another policy file or with the log's own, and
 * with --out each is written to a file. Returns the exit code: 3 if too many lines were not read, 1 if a condition of --fail-if
 * holds, else 0.
 */
export const replay: Run = async (files, given, signal) => {
  if (files.length === 0) throw usageError(`replay needs a policy file ${EXAMPLE}`)
  const conditions = optionTexts(given, 'failIf').map((text) => ({ text, holds: parseFailIf(text) }))
  const againstText = optionOf(given, 'against', String)
  const isAgainstLog = againstText === 'log'
  // Without a log among the files, the log is stdin.
  if (files.length === 1 && [files[0], againstText].includes(STDIN)) throw usageError(STDIN_TWICE)
  const againstPaths = againstText === undefined || isAgainstLog ? [] : [againstText]
  refuseOverwriting([...(files.length === 1 ? [STDIN] : []), ...files, ...againstPaths], given)
  const [file, againstFile] = await withoutErrors([files.at(-1)!, ...againstPaths], signal, EXAMPLE)
  const plan = optionOf(given, 'plan', String)
  refuseUnknownPlan(plan, file!.limiters)
  const limiters = ofPlan(file!.limiters, plan)
  const against = isAgainstLog ? 'log' : againstFile && ofPlan(againstFile.limiters, plan)
  const own = selectorOf(given)
  maxUnreadOf(given)
  const all = [...limiters, ...(againstFile?.limiters ?? [])]
  const selectors = all.map(({ by = own.by, where = own.where, exempt }) => ({
    by,
    where,
    exempt,
    orAddress: true,
  }))
  const needs = isAgainstLog ? ['status'] : []
  const readOptions = { ...readOptionsOf(given, selectors, signal), needs }
  const reading = await logs.readLogs(sourcesOf(files.slice(0, -1), signal), readOptions)
  const out = optionOf(given, 'out', (path) => openSync(path, 'w'))
  /** Writes one decision to the file of --out, as a line of JSON. */
  const write: logs.LogReplayOptions['onDecision'] = (time, limiter, { keys, cost }, decision) => {
    const { allowed, policy, remaining, retryAfterMs } = decision
    const line = { time, limiter, key: keys[0], cost, allowed, policy, remaining, retryAfterMs }
    writeSync(out!, `${asJson(hashed(line, given))}\n`)
  }
  const options = { limiters, against, signal, onDecision: out === undefined ? out : write } as const
  const report = hashed(await logs.replay(reading, options), given)
  const code = printReport(report, given, () => printReplay(report, pageOf(process.stdout)))
  const met = conditions.filter((condition) => condition.holds(report))
  for (const { text } of met) print(process.stderr, [`sluice: --fail-if '${text}' holds`])
  return code > 0 || met.length === 0 ? code : 1
}

/** Refuses a plan that no limiter of the policy file has. @throws {UsageError} with the plans that there are. */
function refuseUnknownPlan(plan: string | undefined, limiters: readonly policies.ReadLimiter[]): void {
  const plans = new Set(limiters.flatMap((limiter) => [...(limiter.plans?.keys() ?? [])]))
  if (plan === undefined || plans.has(plan)) return
  const known = plans.size > 0 ? `the plans are '${[...plans].join("', '")}'` : 'it has no plans'
  throw usageError(`no limiter of the policy file has a plan '${plan}'; ${known}`)
}

/** The limiters of a policy file, each with the policies of the plan if it has that. */
const ofPlan = (limiters: readonly policies.ReadLimiter[], plan = ''): readonly policies.ReadLimiter[] =>
  limiters.map((limiter) => ({ ...limiter, policies: limiter.plans?.get(plan) ?? limiter.policies }))

/**
 * The command `sluice check`: prints the errors of the policy file at `path`, and its smells: policies that are allowed but seldom
 * meant. With --against, which names another policy file, it also prints as smells what is lost when the file replaces that one,
 * such as a limiter. With --for app it prints what the limits of an application cannot do. Returns the exit code: 1 for errors, and
 * under --strict for smells too, else 0.
 * @throws {Error} for an --against file that is faulty, after the report on the file itself is printed.
 */
export const check: Run = async ([path = STDIN], given, signal) => {
  const againstPaths = optionTexts(given, 'against')
  refuseOverwriting([path, ...againstPaths], given)
  const file = policies.readPolicies(await textOf(bytesOf(path, signal, LARGEST)))
  let againstError: Error | undefined
  const againstFiles = await withoutErrors(againstPaths, signal, EXAMPLE).catch((error: Error) => {
    againstError = error
    return []
  })
  const losses = againstFiles.flatMap((againstFile) => policies.changesAgainst(file, againstFile))
  const inApp = optionOf(given, 'for', appOnly) ? policies.problemsInApp(file) : []
  const problems = [...file.errors, ...inApp, ...policies.smellsOf(file), ...losses]
  const errors = problems.filter(({ severity }) => severity === 'error').length
  const smells = problems.length - errors
  const sum = `${count(errors, 'error')}, ${count(smells, 'smell')}`
  const text = (): string[] => [...linesOf(path, problems), sum]
  printReport({ version: 1, command: 'check', file: path, problems }, given, text)
  if (againstError) throw againstError
  return errors > 0 || (given['strict'] === true && smells > 0) ? 1 : 0
}

/** Reads --for. @throws {UsageError} for any other text than 'app'. */
function appOnly(text: string): true {
  if (text === 'app') return true
  throw usageError(`--for takes app, got '${text}'`)
}

/** The address of the docs, as far as they are published: while it is empty no address is printed. */
const DOCS: string = ''

/**
 * The command `sluice option`: prints what an option, a method or a class of another package is called here, for each package
 * that has one of this name. Returns the exit code 0, or 1 if no package has one; then the nearest name is suggested.
 */
export const option: Run = async ([name = ''], given) => {
  const { OTHERS } = await import('./others.gen.js')
  const plain = (text: string): string => text.toLowerCase().replace(/\(.*/s, '')
  const found = OTHERS.filter(([otherName]) => plain(otherName!) === plain(name))
  const otherNames = OTHERS.map(([otherName]) => otherName!)
  const near = found.length === 0 ? nearestTo(name, otherNames) : undefined
  const rows = found.map(([otherName, otherPackage, page, here]) => ({
    name: otherName,
    package: otherPackage,
    here: here!.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'), // without the addresses of links
    ...(DOCS && { address: `${DOCS}/migrate/${page}` }),
  }))
  const none = `no other package is known to have '${name}'${near === undefined ? '' : `; did you mean '${near}'?`}`
  const lines = rows.flatMap(({ here, address, ...row }) => [
    `${row.package}  ${row.name}`,
    `  ${here}`,
    ...(address === undefined ? [] : [`  ${address}`]),
  ])
  printReport({ version: 1, command: 'option', rows }, given, () => (rows.length > 0 ? lines : [none]))
  return rows.length > 0 ? 0 : 1
}

const EXAMPLE = "behind the logs, as in 'sluice replay access.log policies.json'"

/**
 * The report as it may be shown. With --hash-keys each caller's key is replaced by the first 16 digits of its digest, by which his
 * entries can still be told from others'. Quoted lines of the log (`text`) and paths are left out, as they contain keys too.
 */
function hashed<T>(report: T, given: Given): T {
  if (given['hashKeys'] !== true) return report
  /** What JSON.stringify writes for a value of the report, by the name of its field. */
  const replaced = (name: string, value: unknown): unknown => {
    if (typeof value !== 'string') return value // a policy may be named `key`
    if (name === 'text' || name === 'path') return '(left out by --hash-keys)'
    return name === 'key' ? `sha256:${digest(value).slice(0, 16)}` : value
  }
  return JSON.parse(JSON.stringify(report, replaced)) as T
}

/**
 * Prints a report: as one line of JSON under --json, else the lines that `text` makes. Returns the exit code: 0, or 3 if more of
 * the lines that look like calls were not read than --max-unread allows. A warning then stands first, and on stderr.
 */
function printReport(report: object, given: Given, text: () => readonly TextLine[]): number {
  const { unread = 0, read = 0, skipped = {} } = (report as { basis?: Partial<logs.Basis> }).basis ?? {}
  const isPartial = unread > (maxUnreadOf(given) / 100) * (unread + read)
  const advice =
    'clock ran back' in skipped ? '; give files as arguments, which are merged by time, or --skew' : ''
  const warning = `${percent(unread / (unread + read))} of the lines that look like calls were not read: this is a report on the rest${advice}`
  print(
    process.stdout,
    given['json'] === true ? [asJson(report)] : [...(isPartial ? [bold(warning)] : []), ...text()],
  )
  if (isPartial) print(process.stderr, [`sluice: ${warning}`])
  if (given['hashKeys'] === true) print(process.stderr, [`sluice: --hash-keys: ${UNSALTED}`])
  return isPartial ? 3 : 0
}

const UNSALTED =
  'digests have no salt, so who tries all addresses, or knows a key, finds its caller in this output'
