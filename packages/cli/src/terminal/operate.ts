import { parseDuration } from '@sluice/core'
import { fleetTopKeys } from '@sluice/metrics'
import { once } from 'node:events'
import { hostname, userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { type ActName, planAct, type PlannedAct } from '../acts/act.js'
import { openStore } from '../acts/open-store.js'
import { keyOf, type KnownLimits, Site } from '../acts/site.js'
import { type Given, quoted, usageError } from './arguments.js'
import { asJson, bold, faint, print, printable, show, type TextLine } from './door.js'
import type { Run } from './main.js'
import { number, valueOf } from './options.js'
import { count, pageOf, shown, table } from './page.js'
import { withoutErrors } from './policy-files.js'

/*
 * The commands on a store. What they do is in ../acts; here they are read, asked about and printed.
 */

/** `sluice why`: how a call of the caller would be decided now, under each limiter, and what would let it pass. Writes nothing. */
export const why: Run = ([text = ''], given, signal) =>
  onStore(given, signal, async (site) => {
    const cost = valueOf(given, 'cost', (units) => number(units, 0, 2 ** 31)) ?? 1
    const plan = valueOf(given, 'plan', String)
    if (plan !== undefined && !site.limits.some(({ plans }) => plans?.has(plan)))
      throw usageError(`no limiter here has a plan '${plan}'`)
    const rows = await Promise.all(
      targetsOf(site, text, given).map(async ({ limits, key }) => {
        const policies = plan === undefined ? undefined : limits.plans?.get(plan)
        return site.limiterOf(limits).explain(key, { cost, ...(policies && { policies }) })
      }),
    )
    const lines = rows.flatMap(({ limiter, key, sentence, cures }) => [
      bold(`${limiter}: ${key}`),
      sentence,
      ...cures.map((cure) =>
        faint(`  sluice ${CURES[cure](quoted(key))} --limiter ${quoted(limiter)} --reason ...`),
      ),
    ])
    return report(given, { command: 'why', rows }, lines)
  })

const CURES = {
  unblock: (key: string) => `unblock ${key}`,
  reset: (key: string) => `reset ${key}`,
  removeOverride: (key: string) => `exempt ${key} --remove`,
  override: (key: string) => `exempt ${key} --for 1h`,
}

/** `sluice top`: the keys with most denials of each limiter, as processes have posted them. */
export const top: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const named = valueOf(given, 'limiter', String)
    const names = named === undefined ? site.limits.map(({ name }) => name) : [named]
    if (names.length === 0) throw usageError('top needs --policies or --limiter')
    const { store } = site.opened
    const rows = await Promise.all(
      names.map(async (limiter) => ({ limiter, ...(await fleetTopKeys(store, limiter)) })),
    )
    const lines = rows.flatMap(({ limiter, processes, denied }) => [
      bold(`${limiter}: top keys of ${processes === 1 ? '1 process' : `${count(processes)} processes`}`),
      ...(processes === 0
        ? ['none posts any: topKeys(limiter, { fleet: store }) of @sluice/metrics does']
        : []),
      ...inColumns(
        given,
        ['key', 'denied', 'error'],
        denied.map(({ key, count: many, error }) => [key, count(many), count(error)]),
      ),
    ])
    return report(given, { command: 'top', rows }, lines)
  })

/** `sluice blocked`: the blocked keys of the store. */
export const blocked: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const left = new Map<string, number>()
    const rows = []
    for await (const row of site.blocked(left, signal)) {
      rows.push(row)
      show(`${count(rows.length, 'blocked key')}`)
    }
    const cells = rows.map(({ limiter, key, until, by, reason, isRecorded }) => [
      key,
      limiter,
      shown(until.toISOString()),
      isRecorded ? `${by ?? 'an operator'}: ${reason ?? 'no reason given'}` : 'a penalty or an older process',
    ])
    const alone = [...left].map(([what, many]) => faint(`left alone: ${count(many)} ${what}`))
    const lines = [
      ...(rows.length === 0
        ? ['no key is blocked']
        : inColumns(given, ['key', 'limiter', 'until', 'by'], cells)),
      ...alone,
      ...(site.opened.redis
        ? []
        : [faint('blocks without a record, as those of penalties, are not listed here: ask why KEY')]),
    ]
    return report(given, { command: 'blocked', rows, leftAlone: Object.fromEntries(left) }, lines)
  })

/** `sluice overrides`: the records of all limiters of the store, the latest first. */
export const overrides: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const { records, unread } = await site.records()
    const named = valueOf(given, 'limiter', String)
    const own = records.filter(({ limiter }) => named === undefined || limiter === named)
    const rows = own.map(({ kind, limiter, until, version, appliedAt, content }) => {
      const [at, madeAt] = [until, version].map((us) => new Date(us / 1000)) as [Date, Date]
      const lastAppliedAt = appliedAt > 0 ? new Date(appliedAt / 1000) : null
      return { kind, limiter, ...content, madeAt, until: at, lastAppliedAt }
    })
    const cells = rows.map(({ kind, limiter, key, until, by, reason, exempt, factor, limits }) => [
      key,
      limiter,
      exempt ? 'exempt' : factor ? `factor ${factor}` : limits ? `limits ${JSON.stringify(limits)}` : kind,
      shown(until.toISOString()),
      `${by ?? 'an operator'}: ${reason ?? 'no reason given'}`,
    ])
    const lines = [
      ...(rows.length === 0
        ? ['no records']
        : inColumns(given, ['key', 'limiter', 'what', 'until', 'by'], cells)),
      ...(unread > 0
        ? [faint(`left alone: ${count(unread, 'record')} that this version does not know`)]
        : []),
    ]
    return report(given, { command: 'overrides', rows, unread }, lines)
  })

export const unblock: Run = (files, given, signal) => act('unblock', files, given, signal)
export const reset: Run = (files, given, signal) => act('reset', files, given, signal)
export const block: Run = (files, given, signal) => act('block', files, given, signal)
export const exempt: Run = (files, given, signal) => act('exempt', files, given, signal)

/**
 * An act on a caller's key: says how a call would be decided, what it will do and under which limiters, asks, carries it out by the
 * limiters' own operations, and says how a call would be decided then. Returns 1 where the answer was no.
 */
async function act(
  name: ActName,
  [text = '']: readonly string[],
  given: Given,
  signal: AbortSignal,
): Promise<number> {
  const reason = valueOf(given, 'reason', String)
  if (reason === undefined) throw usageError(`${name} needs --reason, as in --reason 'ticket 42'`)
  const isRemoval = given['remove'] === true
  const duration = valueOf(given, 'for', (time) => (parseDuration(time, '--for'), time as `${number}s`))
  const needsTime = name === 'block' || (name === 'exempt' && !isRemoval)
  if (needsTime && duration === undefined) throw usageError(`${name} needs --for, as in --for 1h`)
  if (isRemoval && duration !== undefined) throw usageError('--for and --remove exclude each other')
  const isDry = given['dryRun'] === true
  if (!isDry && given['yes'] !== true && !process.stdin.isTTY)
    throw usageError(`${name} asks before it acts, and stdin is no terminal: give --yes or --dry-run`)
  const by = valueOf(given, 'as', String) ?? `${userInfo().username}@${hostname()}`
  const request = { act: name, duration, isRemoval, reason, by }
  return onStore(given, signal, async (site) => {
    const targets = targetsOf(site, text, given)
    const planned = await Promise.all(
      targets.map(({ limits, key }) => planAct(site.limiterOf(limits), key, request)),
    )
    const isJson = given['json'] === true
    const before = [...planned.flatMap(linesBefore), `by ${by}: ${reason}`]
    if (!isJson) print(process.stdout, before)
    if (isDry)
      return report(given, { command: name, isDry, rows: planned }, [faint('--dry-run: nothing was done')])
    if (given['yes'] !== true && !(await confirmed(isJson ? before : []))) return 1
    const rows = []
    for (const each of planned) rows.push({ ...each, after: await each.carryOut() })
    const lines = rows.flatMap(({ limiter, key, after }) => [
      bold(`${limiter}: ${key}, done`),
      after.sentence,
    ])
    return report(given, { command: name, isDry, by, reason, rows }, lines)
  })
}

const linesBefore = ({ limiter, key, before, will }: PlannedAct): TextLine[] => [
  bold(`${limiter}: ${key}`),
  before.sentence,
  will,
]

/** Asks on the terminal whether to go on. Anything but yes is a no. */
async function confirmed(lines: readonly TextLine[]): Promise<boolean> {
  print(process.stderr, [...lines, 'Carry it out? yes or no'])
  const answers = createInterface({ input: process.stdin })
  const [answer] = (await Promise.race([once(answers, 'line'), once(answers, 'close')])) as [string?]
  answers.close()
  return /^y(?:es)?$/i.test(answer?.trim() ?? '')
}

/** Opens the store and the limits that the options name, runs a command on them, and closes both. */
async function onStore(
  given: Given,
  signal: AbortSignal,
  run: (site: Site) => Promise<number>,
): Promise<number> {
  const url = valueOf(given, 'store', String) ?? process.env['SLUICE_STORE']
  if (!url) throw usageError('name the store by --store redis://... or postgres://..., or in SLUICE_STORE')
  const path = valueOf(given, 'policies', String)
  const [file] = path === undefined ? [] : await withoutErrors([path], signal, 'behind --policies')
  const [prefix, table, schema] = ['prefix', 'table', 'schema'].map((name) => valueOf(given, name, String))
  const groups = valueOf(given, 'groups', (text) => number(text, 2, 1024))
  const opened = await openStore(url, {
    ...(prefix !== undefined && { prefix }),
    ...(groups !== undefined && { groups }),
    ...(table !== undefined && { table }),
    ...(schema !== undefined && { schema }),
  })
  const warned = (message: string): void => print(process.stderr, [`sluice: ${message}`])
  const site = new Site(opened, file?.limiters ?? [], warned)
  try {
    return await run(site)
  } finally {
    await site.close()
  }
}

/**
 * The limiters that a command on a caller is about, each with his key there. A limiter that cannot count him, as it counts by address
 * and he has none, is left out.
 * @throws {UsageError} where there is none.
 */
function targetsOf(site: Site, text: string, given: Given): { limits: KnownLimits; key: string }[] {
  const named = valueOf(given, 'limiter', String)
  const limits = site.limits.filter(({ name }) => named === undefined || name === named)
  if (limits.length === 0) {
    const known = site.limits.map(({ name }) => `'${name}'`).join(', ')
    const why = known
      ? `there is no limiter '${named}'; there are ${known}`
      : 'the limits of the store are named by --policies'
    throw usageError(why)
  }
  const problems: string[] = []
  const targets = limits.flatMap((each) => {
    try {
      return [{ limits: each, key: keyOf(text, each.by) }]
    } catch (error) {
      problems.push(`'${each.name}': ${(error as Error).message}`)
      return []
    }
  })
  if (targets.length === 0) throw usageError(problems.join('; '))
  return targets
}

/** Rows as columns under a heading, each cell as it may be printed, keys as wide as the page allows. */
function inColumns(given: Given, head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const { keys } = pageOf(process.stdout)
  return rows.length === 0
    ? []
    : table([head, ...rows.map(([key, ...rest]) => [printable(key!, keys), ...rest])])
}

/** Prints a report: as one line of JSON under --json, else the lines. Returns the exit code 0. */
function report(given: Given, value: object, lines: readonly TextLine[]): number {
  print(process.stdout, given['json'] === true ? [asJson({ version: 1, ...value })] : lines)
  return 0
}
