import { parseDuration } from '@sluice/core'
import { fleetTopKeys } from '@sluice/metrics'
import { once } from 'node:events'
import { hostname, userInfo } from 'node:os'
import { createInterface } from 'node:readline'
import { type ActRequest, explained, planAct } from '../acts/act.js'
import { type KnownLimits, postedLimits } from '../acts/known-limits.js'
import { openStore } from '../acts/open-store.js'
import { keyOf, type LeftAlone, Site } from '../acts/site.js'
import { flagOf, type Given, quoted, textsOf, usageError } from './arguments.js'
import { asJson, bold, faint, harmless, print, printable, show, type TextLine } from './door.js'
import type { Run } from './main.js'
import { number, valueOf } from './options.js'
import { count, pageOf, shown, table, wrapped } from './page.js'
import { withoutErrors } from './policy-files.js'

/*
 * The commands on a store. What they do is in ../acts; here they are read, asked about and printed.
 */

/**
 * `sluice why`: how a call of the caller would be decided now, under each limiter, and what would let it pass. Writes nothing. It
 * returns 1 where no caller is found by an id.
 */
export const why: Run = async ([text], given, signal) => {
  refuseOthers('why', text, given, ['key', 'id'])
  if (given['id'] !== undefined && given['limiter'] !== undefined)
    throw usageError('--id and --limiter exclude each other: an id is of one limiter')
  return onStore(given, signal, async (site) => {
    const cost = valueOf(given, 'cost', (units) => number(units, 0, 2 ** 31)) ?? 1
    const plan = valueOf(given, 'plan', String)
    if (plan !== undefined && !site.limits.some(({ plans }) => plans?.has(plan)))
      throw usageError(`no limiter here has a plan '${plan}'`)
    const id = valueOf(given, 'id', (instance) => instance.replace(/^urn:sluice:denial:/, ''))
    const left: LeftAlone = new Map()
    const found = id === undefined ? undefined : await foundBy(id, site, left, signal)
    if (typeof found === 'string') {
      report(given, { command: 'why', rows: [], remark: found }, [found], left)
      return 1
    }
    const targets = found ? [found] : targetsOf(site, text, given)
    const rows = await Promise.all(
      targets.map(({ limits, key }) => {
        const policies = plan === undefined ? undefined : limits.plans?.get(plan)
        return explained(site.limitersOf(limits), key, { cost, ...(policies && { policies }) })
      }),
    )
    const place = PLACE.flatMap((name) => textsOf(given, name).map((value) => option(name, value)))
    const store = given['store'] === undefined ? [] : ['--store ...']
    const lines = rows.flatMap(({ limiter, key, sentence, cures }) => [
      bold(`${limiter}: ${key}`),
      ...wrapped(sentence),
      ...cures.map((cure) => {
        const words = [
          CURES[cure](option('key', asGiven(key))),
          option('limiter', limiter),
          ...place,
          ...store,
        ]
        return faint(['  sluice', ...words, '--reason ...'].join(' '))
      }),
    ])
    return report(given, { command: 'why', rows }, lines, left)
  })
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

/** `sluice top`: the keys with most denials of each limiter, as processes have posted them. */
export const top: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const named = valueOf(given, 'limiter', String)
    const names = named === undefined ? site.limits.map(({ name }) => name) : [named]
    if (names.length === 0)
      throw usageError('no process posts top keys: name a limiter by --policies or --limiter')
    const read = async (limiter: string) => ({
      limiter,
      ...(await fleetTopKeys(site.opened.store, limiter)),
    })
    const left: LeftAlone = new Map()
    await site.denials(left)
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
    return report(given, { command: 'top', rows }, lines, left)
  })

/** `sluice blocked`: the blocked keys of the store, or of one limiter. */
export const blocked: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const left: LeftAlone = new Map()
    const named = valueOf(given, 'limiter', String)
    const rows = []
    for await (const row of site.blocked(left, signal, named)) show(`${count(rows.push(row), 'blocked key')}`)
    const cells = rows.map(({ limiter, key, until, isRecorded, ...words }): ListedRow => {
      const by = isRecorded ? authorOf(words) : 'a penalty or an older process'
      return [[key, limiter, shown(until.toISOString())], by]
    })
    const lines = [
      ...listed(['key', 'limiter', UNTIL], cells, 'no key is blocked'),
      ...(site.opened.redis ? [] : [faint('those of penalties have no record here: ask why KEY')]),
    ]
    return report(given, { command: 'blocked', rows }, lines, left)
  })

/** `sluice overrides`: the records of all limiters of the store, the latest first. */
export const overrides: Run = (_, given, signal) =>
  onStore(given, signal, async (site) => {
    const left: LeftAlone = new Map()
    const named = valueOf(given, 'limiter', String)
    const dateOf = (us: number): Date => new Date(us / 1000)
    const rows = (await site.records(left))
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
    return report(given, { command: 'overrides', rows }, lines, left)
  })

const authorOf = (words: { by?: string | undefined; reason?: string | undefined }): string =>
  `${words.by ?? 'an operator'}: ${words.reason ?? 'no reason given'}`

/**
 * Makes the command of an act: it says how a call would be decided, what it will do and under which limiters, asks, carries it out, and
 * says how a call would be decided then. It returns 1 where the answer was no.
 */
function acting(name: Exclude<ActRequest['act'], 'remove'>): Run {
  return async ([text], given, signal) => {
    const [isRemoval, isDry, isAsked] = ['remove', 'dryRun', 'yes'].map((flag) => given[flag] === true)
    const act = isRemoval ? 'remove' : name
    refuseOthers(name, text, given, ['key'])
    const reason = valueOf(given, 'reason', String)
    const duration = valueOf(given, 'for', (time) => (parseDuration(time, '--for'), time as `${number}s`))
    const isTimed = act === 'block' || act === 'exempt'
    if (reason === undefined) throw usageError(`${name} needs --reason, as in --reason 'ticket 42'`)
    if (isTimed && duration === undefined) throw usageError(`${name} needs --for, as in --for 1h`)
    if (isRemoval && duration !== undefined) throw usageError('--for and --remove exclude each other')
    if (!isDry && !isAsked && !process.stdin.isTTY)
      throw usageError(`${name} asks before it acts, and stdin is no terminal: give --yes or --dry-run`)
    const by = valueOf(given, 'as', String) ?? `${userInfo().username}@${hostname()}`
    return onStore(given, signal, async (site) => {
      const plan = ({ limits, key }: Target) =>
        planAct(site.limitersOf(limits), key, { act, duration, reason, by })
      const planned = await Promise.all(targetsOf(site, text, given).map(plan))
      const before = planned.flatMap(({ limiter, key, before: { sentence }, will }) => {
        return [bold(`${limiter}: ${key}`), ...[sentence, will].flatMap((text) => wrapped(text))]
      })
      print(given['json'] === true ? process.stderr : process.stdout, [...before, `by ${by}: ${reason}`])
      const head = { command: name, isDry, by, reason }
      if (isDry) return report(given, { ...head, rows: planned }, [faint('--dry-run: nothing was done')])
      if (!isAsked && !(await confirmed(signal))) return 1
      const rows = []
      for (const each of planned) if (!signal.aborted) rows.push({ ...each, after: await each.carryOut() })
      const lines = rows.flatMap(({ limiter, key, after }) => [
        bold(`${limiter}: ${key}, done`),
        ...wrapped(after.sentence),
      ])
      return report(given, { ...head, rows }, lines)
    })
  }
}

export const unblock = acting('unblock')
export const reset = acting('reset')
export const block = acting('block')
export const exempt = acting('exempt')

/** Asks on the terminal whether to go on. Anything but yes is a no, and so is Ctrl-C. */
async function confirmed(signal: AbortSignal): Promise<boolean> {
  print(process.stderr, ['Carry it out? yes or no'])
  const answers = createInterface({ input: process.stdin, signal })
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
  const { SLUICE_STORE } = process.env
  const url = valueOf(given, 'store', String) ?? SLUICE_STORE
  if (!url) throw usageError('name the store by --store redis://... or postgres://..., or in SLUICE_STORE')
  const path = valueOf(given, 'policies', String)
  const [file] = path === undefined ? [] : await withoutErrors([path], signal, 'behind --policies')
  const groups = valueOf(given, 'groups', (text) => number(text, 2, 1024))
  const texts = ['prefix', 'table', 'schema'].map((name) => [name, valueOf(given, name, String)] as const)
  const place = Object.fromEntries(texts.filter(([, value]) => value !== undefined))
  const opened = await openStore(url, { ...place, ...(groups !== undefined && { groups }) })
  const failed = (error: unknown) => opened.close().then(() => Promise.reject(error))
  const limits = file?.limiters ?? (await postedLimits(opened.store).catch(failed))
  const site = new Site(opened, limits, (message) => print(process.stderr, [`sluice: ${message}`]))
  try {
    return await run(site)
  } finally {
    await site.close()
  }
}

/** Refuses a command on other than one caller, whom its argument names, or one of the options. @throws {UsageError} */
function refuseOthers(
  command: string,
  text: string | undefined,
  given: Given,
  options: readonly string[],
): void {
  const ways = [text, ...options.map((name) => given[name])].filter((way) => way !== undefined)
  if (ways.length !== 1) throw usageError(`${command} takes one of KEY, ${options.map(flagOf).join(', ')}`)
}

interface Target {
  readonly limits: KnownLimits
  readonly key: string
}

/**
 * The limiters that a command on a caller is about, each with his key there: that of --key, or else that which the limiter makes of
 * `text`. A limiter that cannot count him, as it counts by address and he has none, is left out.
 * @throws {UsageError} where there is none.
 */
function targetsOf(site: Site, text: string | undefined, given: Given): Target[] {
  const own = valueOf(given, 'key', keyIn)
  const named = valueOf(given, 'limiter', String)
  const limits = site.limits.filter(({ name }) => named === undefined || name === named)
  const known = site.limits.map(({ name }) => `'${name}'`).join(', ')
  if (known === '') throw usageError('no process posts its limits: name them by --policies')
  const problems = limits.length === 0 ? [`there is no limiter '${named}'; there are ${known}`] : []
  const targets = limits.flatMap((each) => {
    try {
      return [{ limits: each, key: own ?? keyOf(text!, each.by) }]
    } catch (error) {
      problems.push(`'${each.name}': ${(error as Error).message}`)
      return []
    }
  })
  if (targets.length === 0) throw usageError(problems.join('; '))
  return targets
}

/** The key that --key has: the text itself, or what it is the JSON of. @throws {UsageError} */
function keyIn(text: string): string {
  if (!text.startsWith('"')) return text
  try {
    return JSON.parse(text) as string
  } catch {
    throw usageError(`--key begins with a quote, and is no text in JSON: ${text}`)
  }
}

/**
 * The key of a denial's id, as posts have it or Redis, and its limits; or where it is not to be found, in words.
 * @throws {UsageError} where its limits are not known.
 */
async function foundBy(
  id: string,
  site: Site,
  left: LeftAlone,
  signal: AbortSignal,
): Promise<Target | string> {
  const { SLUICE_SECRET: secret } = process.env
  const progress = (keys: number): void => show(`${count(keys, 'key')} looked at`)
  const found = await site.find(id, secret, left, progress, signal)
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

/** A row of a table by its cells, of which the first is a key, with words of people to be printed below it. */
type ListedRow = readonly [cells: readonly [key: string, ...rest: string[]], words?: string]

/** Rows as columns under a heading, keys as wide as the page allows; or where there is no row, `none`. */
function listed(head: readonly string[], rows: readonly ListedRow[], none: string): TextLine[] {
  const { keys } = pageOf(process.stdout)
  const cells = rows.map(([[key, ...rest]]) => [printable(key, keys), ...rest])
  const [heading = '', ...lines] = table([head, ...cells])
  const wordsOf = ([, words]: ListedRow) => (words === undefined ? [] : wrapped(words, '  ').map(faint))
  return rows.length === 0 ? [none] : [heading, ...lines.flatMap((line, i) => [line, ...wordsOf(rows[i]!)])]
}

const UNTIL = 'until (UTC)'

/** Prints a report, and what was left alone: as one line of JSON under --json, else the lines. Returns the exit code 0. */
function report(given: Given, value: object, lines: readonly TextLine[], left?: LeftAlone): number {
  const whole = { version: 1, ...value, ...(left && { leftAlone: Object.fromEntries(left) }) }
  const notes = [...(left ?? [])].map(([what, many]) => faint(`left alone: ${what} (${count(many)})`))
  print(process.stdout, given['json'] === true ? [asJson(whole)] : [...lines, ...notes])
  return 0
}
