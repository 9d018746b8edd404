import { parseDuration } from '@sluice/core'
import { fleetTopKeys } from '@sluice/metrics'
import { once } from 'node:events'
import { hostname, userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { type ActRequest, explained, planAct } from '../acts/act.js'
import { type KnownLimits, postedLimits } from '../acts/known-limits.js'
import { openStore } from '../acts/open-store.js'
import { keyOf, type LeftAlone, Site } from '../acts/site.js'
import { flagOf, type Given, quoted, optionTexts, usageError } from './arguments.js'
import { asJson, bold, faint, harmless, print, printable, show, type TextLine } from './door.js'
import type { Run } from './main.js'
import { optionOf, wholeNumber } from './options.js'
import { count, pageOf, shown, table, wrapped } from './page.js'
import { withoutErrors } from './policy-files.js'

/*
 * The commands on a store. What they do is in ../acts; here they are read, asked about and printed.
 */

/**
 * The command `sluice why`: prints how a call of a caller would be decided now, under each limiter, and which commands would let it
 * pass. The caller is named by the argument (`text`), by --key or by the --id of a denial. Writes nothing to the store. Returns the
 * exit code 0, or 1 if no caller is found by the id.
 */
export const why: Run = async ([text], given, signal) => {
  requireOneCaller('why', text, given, ['key', 'id'])
  if (given['id'] !== undefined && given['limiter'] !== undefined)
    throw usageError('--id and --limiter exclude each other: an id is of one limiter')
  return onStore(given, signal, async (site) => {
    const cost = optionOf(given, 'cost', (units) => wholeNumber(units, 0, 2 ** 31)) ?? 1
    const plan = optionOf(given, 'plan', String)
    if (plan !== undefined && !site.limits.some(({ plans }) => plans?.has(plan)))
      throw usageError(`no limiter here has a plan '${plan}'`)
    const id = optionOf(given, 'id', (urn) => urn.replace(/^urn:sluice:denial:/, ''))
    const leftAlone: LeftAlone = new Map()
    const found = id === undefined ? undefined : await findById(id, site, leftAlone, signal)
    if (typeof found === 'string') {
      report(given, { command: 'why', rows: [], remark: found }, [found], leftAlone)
      return 1
    }
    const targets = found ? [found] : targetsOf(site, text, given)
    const rows = await Promise.all(
      targets.map(({ limits, key }) => {
        const policies = plan === undefined ? undefined : limits.plans?.get(plan)
        return explained(site.limitersOf(limits), key, { cost, ...(policies && { policies }) })
      }),
    )
    const lines = rows.flatMap(({ limiter, key, sentence, cures }) => [
      bold(`${limiter}: ${key}`),
      ...wrapped(sentence),
      ...cures.map((cure) => cureLine(cure, key, limiter, given)),
    ])
    return report(given, { command: 'why', rows }, lines, leftAlone)
  })
}

/** The command that would let the caller pass, with the options by which this command found its store and limiters. */
function cureLine(cure: keyof typeof CURES, key: string, limiter: string, given: Given): TextLine {
  const command = CURES[cure](option('key', asGiven(key)))
  const place = PLACE.flatMap((name) => optionTexts(given, name).map((value) => option(name, value)))
  const store = given['store'] === undefined ? [] : ['--store ...']
  const words = ['  sluice', command, option('limiter', limiter), ...place, ...store, '--reason ...']
  return faint(words.join(' '))
}

/** The options that say where keys are, but for the URL, which may hold a password. */
const PLACE = ['policies', 'prefix', 'groups', 'table', 'schema']

/** An option of a command to be copied. */
const option = (name: string, value: string): string =>
  `--${name}${value.startsWith('-') ? '=' : ' '}${quoted(value)}`

/** A key as --key takes it: as JSON where it would not be printed or read as it is. */
const asGiven = (key: string): string => (/^\s*$|^"/.test(key) || harmless(key) !== key ? asJson(key) : key)

const CURES = {
  unblock: (key: string) => `unblock ${key}`,
  reset: (key: string) => `reset ${key}`,
  removeOverride: (key: string) => `exempt ${key} --remove`,
  override: (key: string) => `exempt ${key} --for 1h`,
}

/** The command `sluice top`: prints the keys with most denials of each limiter, as processes have posted them. */
export const top: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const named = optionOf(given, 'limiter', String)
    const names = named === undefined ? site.limits.map(({ name }) => name) : [named]
    if (names.length === 0)
      throw usageError('no process posts top keys: name a limiter by --policies or --limiter')
    const read = async (limiter: string) => ({
      limiter,
      ...(await fleetTopKeys(site.opened.store, limiter)),
    })
    const leftAlone: LeftAlone = new Map()
    await site.denials(leftAlone)
    const rows = await Promise.all(names.map(read))
    const lines = rows.flatMap(({ limiter, processes, denied }) => [
      bold(`${limiter}: top keys of ${processes === 1 ? '1 process' : `${count(processes)} processes`}`),
      ...listed(
        ['key', 'denied', 'error'],
        denied.map(({ key, count: many, error }) => [[key, count(many), count(error)]]),
        processes === 0
          ? 'none posts any: topKeys(limiter, { fleet: store }) of @sluice/metrics does'
          : 'no denials',
      ),
    ])
    return report(given, { command: 'top', rows }, lines, leftAlone)
  })

/** The command `sluice blocked`: prints the blocked keys of the store, or of one limiter. */
export const blocked: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const leftAlone: LeftAlone = new Map()
    const named = optionOf(given, 'limiter', String)
    const rows = []
    for await (const row of site.blocked(leftAlone, signal, named))
      show(`${count(rows.push(row), 'blocked key')}`)
    const cells = rows.map(({ limiter, key, until, isRecorded, ...words }): ListedRow => {
      const by = isRecorded ? authorOf(words) : 'a penalty or an older process'
      return [[key, limiter, shown(until.toISOString())], by]
    })
    const lines = [
      ...listed(['key', 'limiter', UNTIL], cells, 'no key is blocked'),
      ...(site.opened.redis ? [] : [faint('those of penalties have no record here: ask why KEY')]),
    ]
    return report(given, { command: 'blocked', rows }, lines, leftAlone)
  })

/** The command `sluice overrides`: prints the records (overrides, blocks and holds) of all limiters or one, the latest first. */
export const overrides: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const leftAlone: LeftAlone = new Map()
    const named = optionOf(given, 'limiter', String)
    const dateOf = (us: number): Date => new Date(us / 1000)
    const rows = (await site.records(leftAlone))
      .filter(({ limiter }) => named === undefined || limiter === named)
      .map(({ kind, limiter, until, version, appliedAt, content }) => {
        const applied = kind === 'override' && { lastAppliedAt: appliedAt > 0 ? dateOf(appliedAt) : null }
        return { kind, limiter, ...content, madeAt: dateOf(version), until: dateOf(until), ...applied }
      })
    const cells = rows.map((row): ListedRow => {
      const { kind, limiter, key, until, exempt: isExempt, factor, limits } = row
      const numbers = factor ? `factor ${factor}` : limits ? `limits ${JSON.stringify(limits)}` : kind
      const what = isExempt ? 'exempt' : numbers
      return [[key, limiter, what, shown(until.toISOString())], authorOf(row)]
    })
    const lines = listed(['key', 'limiter', 'what', UNTIL], cells, 'no records')
    return report(given, { command: 'overrides', rows }, lines, leftAlone)
  })

const authorOf = (words: { by?: string | undefined; reason?: string | undefined }): string =>
  `${words.by ?? 'an operator'}: ${words.reason ?? 'no reason given'}`

/**
 * Makes the command of an act on a caller, such as `sluice block`. For each limiter it prints how a call would be decided and what
 * the act will do. Then it asks (unless --yes is given), carries the act out, and prints how a call would be decided after it. With
 * --dry-run it does nothing more than print. The exit code is 1 if the answer was no.
 */
function actCommand(name: Exclude<ActRequest['act'], 'remove'>): Run {
  return async ([text], given, signal) => {
    requireOneCaller(name, text, given, ['key'])
    const request = actRequestOf(name, given)
    const { reason, by } = request
    const isDry = given['dryRun'] === true
    const isYes = given['yes'] === true
    if (!isDry && !isYes && !process.stdin.isTTY)
      throw usageError(`${name} asks before it acts, and stdin is no terminal: give --yes or --dry-run`)
    return onStore(given, signal, async (site) => {
      const planFor = ({ limits, key }: Target) => planAct(site.limitersOf(limits), key, request)
      const planned = await Promise.all(targetsOf(site, text, given).map(planFor))
      const announced = planned.flatMap(({ limiter, key, before: { sentence }, will }) => {
        return [bold(`${limiter}: ${key}`), ...wrapped(sentence), ...wrapped(will)]
      })
      print(given['json'] === true ? process.stderr : process.stdout, [...announced, `by ${by}: ${reason}`])
      const head = { command: name, isDry, by, reason }
      if (isDry) return report(given, { ...head, rows: planned }, [faint('--dry-run: nothing was done')])
      if (!isYes && !(await confirmed(signal))) return 1
      const rows = []
      for (const plan of planned) if (!signal.aborted) rows.push({ ...plan, after: await plan.carryOut() })
      const lines = rows.flatMap(({ limiter, key, after }) => [
        bold(`${limiter}: ${key}, done`),
        ...wrapped(after.sentence),
      ])
      return report(given, { ...head, rows }, lines)
    })
  }
}

/**
 * What an act is to do, by the options of its command: for how long, why, and in whose name.
 * @throws {UsageError} for options that are missing, or exclude each other.
 */
function actRequestOf(name: Exclude<ActRequest['act'], 'remove'>, given: Given): ActRequest {
  const isRemoval = given['remove'] === true
  const act = isRemoval ? 'remove' : name
  const reason = optionOf(given, 'reason', String)
  const duration = optionOf(given, 'for', (time) => (parseDuration(time, '--for'), time as `${number}s`))
  const isTimed = act === 'block' || act === 'exempt'
  if (reason === undefined) throw usageError(`${name} needs --reason, as in --reason 'ticket 42'`)
  if (isTimed && duration === undefined) throw usageError(`${name} needs --for, as in --for 1h`)
  if (isRemoval && duration !== undefined) throw usageError('--for and --remove exclude each other')
  const by = optionOf(given, 'as', String) ?? `${userInfo().username}@${hostname()}`
  return { act, duration, reason, by }
}

export const unblock = actCommand('unblock')
export const reset = actCommand('reset')
export const block = actCommand('block')
export const exempt = actCommand('exempt')

/** Asks on the terminal whether to go on, and returns whether the answer was yes. The end of the input and Ctrl-C are a no. */
async function confirmed(signal: AbortSignal): Promise<boolean> {
  print(process.stderr, ['Carry it out? yes or no'])
  const answers = createInterface({ input: process.stdin, signal })
  const [answer] = (await Promise.race([once(answers, 'line'), once(answers, 'close')])) as [string?]
  answers.close()
  return /^y(?:es)?$/i.test(answer?.trim() ?? '')
}

/**
 * Opens the store that the options name, runs a command on it, and closes it. The limits are those of the file --policies, or
 * without it those that processes have posted in the store. Returns the command's exit code.
 */
async function onStore(
  given: Given,
  signal: AbortSignal,
  run: (site: Site) => Promise<number>,
): Promise<number> {
  const { SLUICE_STORE } = process.env
  const url = optionOf(given, 'store', String) ?? SLUICE_STORE
  if (!url) throw usageError('name the store by --store redis://... or postgres://..., or in SLUICE_STORE')
  const path = optionOf(given, 'policies', String)
  const [file] = path === undefined ? [] : await withoutErrors([path], signal, 'behind --policies')
  const groups = optionOf(given, 'groups', (text) => wholeNumber(text, 2, 1024))
  const texts = ['prefix', 'table', 'schema'].map((name) => [name, optionOf(given, name, String)] as const)
  const storeSettings = Object.fromEntries(texts.filter(([, value]) => value !== undefined))
  const opened = await openStore(url, { ...storeSettings, ...(groups !== undefined && { groups }) })
  const closeAndThrow = (error: unknown) => opened.close().then(() => Promise.reject(error))
  const limits = file?.limiters ?? (await postedLimits(opened.store).catch(closeAndThrow))
  const site = new Site(opened, limits, (message) => print(process.stderr, [`sluice: ${message}`]))
  try {
    return await run(site)
  } finally {
    await site.close()
  }
}

/** Refuses a command unless one caller is named, by its argument `text` or by one of the options. @throws {UsageError} */
function requireOneCaller(
  command: string,
  text: string | undefined,
  given: Given,
  options: readonly string[],
): void {
  const callers = [text, ...options.map((name) => given[name])].filter((caller) => caller !== undefined)
  if (callers.length !== 1) throw usageError(`${command} takes one of KEY, ${options.map(flagOf).join(', ')}`)
}

/** The limits of a limiter, and a caller's key there. */
interface Target {
  readonly limits: KnownLimits
  readonly key: string
}

/**
 * Returns the limiters that a command on a caller is about, all or that of --limiter, each with the caller's key there: the key of
 * --key, or the key that the limiter makes of his name `text`. A limiter that cannot count him, as it counts by address and he has
 * none, is left out.
 * @throws {UsageError} if no limiter is left, with the reasons.
 */
function targetsOf(site: Site, text: string | undefined, given: Given): Target[] {
  const givenKey = optionOf(given, 'key', keyIn)
  const named = optionOf(given, 'limiter', String)
  const limits = site.limits.filter(({ name }) => named === undefined || name === named)
  const known = site.limits.map(({ name }) => `'${name}'`).join(', ')
  if (known === '') throw usageError('no process posts its limits: name them by --policies')
  const problems = limits.length === 0 ? [`there is no limiter '${named}'; there are ${known}`] : []
  const targets = limits.flatMap((ofLimiter) => {
    try {
      return [{ limits: ofLimiter, key: givenKey ?? keyOf(text!, ofLimiter.by) }]
    } catch (error) {
      problems.push(`'${ofLimiter.name}': ${(error as Error).message}`)
      return []
    }
  })
  if (targets.length === 0) throw usageError(problems.join('; '))
  return targets
}

/** The key that --key names: the text itself, or of a text that begins with a quote, the text that it is the JSON of. @throws {UsageError} */
function keyIn(text: string): string {
  if (!text.startsWith('"')) return text
  try {
    return JSON.parse(text) as string
  } catch {
    throw usageError(`--key begins with a quote, and is no text in JSON: ${text}`)
  }
}

/**
 * Finds the key of a denial by the denial's id, in the posts of processes or among the keys in Redis. Returns the key and the limits
 * of its limiter; or, if the key is not found or only its digest is, a sentence that says so.
 * @throws {UsageError} if the limits are not known.
 */
async function findById(
  id: string,
  site: Site,
  leftAlone: LeftAlone,
  signal: AbortSignal,
): Promise<Target | string> {
  const { SLUICE_SECRET: secret } = process.env
  const progress = (keys: number): void => show(`${count(keys, 'key')} looked at`)
  const found = await site.find(id, secret, leftAlone, progress, signal)
  if (found) {
    const { limiter, key } = found
    const limits = site.limits.find(({ name }) => name === limiter)
    const where = `it is of limiter '${limiter}', key '${key}'`
    if (!limits) throw usageError(`${where}, whose limits --policies does not name`)
    return key.startsWith('sha256:') ? `${where}, which is a digest of it` : { limits, key }
  }
  const further = !site.opened.redis
    ? ', and Postgres has no keys to look through'
    : secret === undefined
      ? '; with SLUICE_SECRET the keys in Redis are looked through'
      : ', and by this secret it is of no key in Redis today or yesterday'
  return `no process has posted a denial '${id}'${further}`
}

/** A row of a table: its cells, the first of which is a key, and a remark to be printed below them. */
type ListedRow = readonly [cells: readonly [key: string, ...rest: string[]], remark?: string]

/** The lines of a table under a heading (`head`), with keys as wide as the page allows; without rows, the line `none`. */
function listed(head: readonly string[], rows: readonly ListedRow[], none: string): TextLine[] {
  const { keys } = pageOf(process.stdout)
  const cells = rows.map(([[key, ...rest]]) => [printable(key, keys), ...rest])
  const [heading = '', ...lines] = table([head, ...cells])
  const remarkOf = ([, remark]: ListedRow) => (remark === undefined ? [] : wrapped(remark, '  ').map(faint))
  return rows.length === 0 ? [none] : [heading, ...lines.flatMap((line, i) => [line, ...remarkOf(rows[i]!)])]
}

const UNTIL = 'until (UTC)'

/** Prints a report, and what was left alone: as one line of JSON under --json, else the lines. Returns the exit code 0. */
function report(given: Given, value: object, lines: readonly TextLine[], leftAlone?: LeftAlone): number {
  const whole = { version: 1, ...value, ...(leftAlone && { leftAlone: Object.fromEntries(leftAlone) }) }
  const notes = [...(leftAlone ?? [])].map(([what, many]) => faint(`left alone: ${what} (${count(many)})`))
  print(process.stdout, given['json'] === true ? [asJson(whole)] : [...lines, ...notes])
  return 0
}
