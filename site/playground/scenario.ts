import '@sluice/calendar' // a Temporal for browsers that have none
import { createLimiter, type LimiterOptions, SluiceError } from '@sluice/core'
import * as declared from '@sluice/core/internal'
import { algorithms } from '@sluice/core/store'
import { readPolicies } from '@sluice/policies'
import { type PastedCall, parseList } from './pasted.js'

/** All that is set in the playground, as it was typed: numbers may be wrong, and are shown with the error beside them. */
export interface Scenario {
  /** The traffic, and the time of it that is shown. */
  readonly settings: Values
  readonly columns: readonly Column[]
}

/** A text of digits is a number, as in TypeScript; every other text stays one. */
export type Typed = string | number
export type Values = Readonly<Record<string, Typed>>

/** One limiter beside others: its policies, and what of `EXTRAS` it has. */
export interface Column {
  readonly policies: readonly Values[]
  readonly wait?: Values
  readonly penalty?: Values
  readonly leases?: Values
}

export const MOST_CALLS = 200_000
export const MOST_COLUMNS = 4

/** Kinds of traffic: what each is called, and the settings that each has. */
const GENERAL = ['span', 'cost', 'keys', 'seed', 'key']
export const KINDS = {
  even: { title: 'Even', settings: ['rate', ...GENERAL] },
  poisson: { title: 'Poisson', settings: ['rate', ...GENERAL] },
  edge: { title: "Burst at a window's edge", settings: ['window', 'burst', ...GENERAL] },
  storm: { title: 'Retry storm', settings: ['clients', 'obey', 'retry', ...GENERAL] },
  day: { title: 'A day with a peak', settings: ['rate', 'peak', ...GENERAL] },
  list: { title: 'A pasted list', settings: ['list', 'key'] },
} as const

/** Settings of traffic and of what is shown of it, with their defaults. Durations are in milliseconds. */
export const SETTINGS = {
  kind: declared.oneOf(Object.keys(KINDS) as (keyof typeof KINDS)[], 'even'),
  rate: declared.number(0.001, 100_000, 10),
  window: declared.duration('1ms', '1d', '10s'),
  burst: declared.whole(1, 10_000, 10),
  clients: declared.whole(1, 10_000, 30),
  obey: declared.whole(0, 100, 50),
  retry: declared.duration('10ms', '1h', '200ms'),
  peak: declared.whole(1, 100, 8),
  span: declared.duration('1s', '1d', '30s'),
  cost: declared.whole(0, 2 ** 31, 1),
  keys: declared.whole(1, 1000, 1),
  seed: declared.whole(0, 2 ** 31, 1),
  /** The real cost, which a call is settled at; left out it is the one that was charged. */
  real: declared.whole(0, 2 ** 31),
  takes: declared.duration('1ms', '1h', '1s'),
  /** One call a line, where `kind` is 'list': its time, cost and key. */
  list: declared.unchecked<Typed | undefined>(),
  /** The time that is shown, of which `to: 0` is the end, and the key whose allowance is. Addresses may name a time after the end. */
  from: declared.whole(0, 172_800_000, 0),
  to: declared.whole(0, 172_800_000, 0),
  key: declared.whole(1, 1000, 1),
} satisfies declared.Declaration

/** The settings that matter beside the others, in the order of their fields. */
export function fieldsBeside({ kind, keys, real }: Values): declared.Declaration {
  const own: readonly string[] = KINDS[kind as keyof typeof KINDS]?.settings ?? []
  const one = kind !== 'list' && !(Number(keys) > 1)
  const names = ['kind', ...own.filter((name) => name !== 'key' || !one), 'real']
  if (real !== undefined) names.push('takes')
  return Object.fromEntries(names.map((name) => [name, SETTINGS[name as keyof typeof SETTINGS]]))
}

/** The options of each algorithm's factory. */
export const ALGORITHMS: Readonly<Record<string, declared.Declaration>> = Object.fromEntries(
  Object.entries(algorithms).map(([name, { options }]) => [name, options]),
)

const WAIT = { maxWait: declared.required(declared.duration('1ms', '1d')) }
const LEASES = {
  ttl: declared.duration('1ms', '1h', '1s'),
  size: declared.whole(1, 1000, 10),
  processes: declared.whole(1, 16, 4),
}

/** The settings that limits may have beside policies: the options of each, and what it begins as. */
export const EXTRAS = {
  wait: { title: 'Wait', declared: WAIT, start: { maxWait: '10s' } },
  penalty: { title: 'Penalty', declared: declared.PENALTY, start: { after: 3, block: '10s', factor: 2 } },
  leases: { title: 'Leases', declared: LEASES, start: { ttl: '1s', size: 10, processes: 4 } },
} as const

/** The limits of a column, checked. */
export type ReadColumn = ReturnType<Reader['column']>

/** Traffic and what is shown of it, checked. */
export type ReadSettings = Omit<declared.Settings<typeof SETTINGS>, 'list'> & {
  readonly calls: readonly PastedCall[]
}

/** A scenario that can be run. */
export type ReadScenario = ReturnType<typeof readScenario>['scenario']

/**
 * Checks every field. Without problems the scenario can be run. They are the library's own errors, by the field that they are about:
 * `columns.0.policies.1.limit`.
 */
export function readScenario(typed: Scenario) {
  const reader = new Reader()
  const settings = reader.settings(typed.settings)
  const columns = typed.columns.map((column, i) => reader.column(column, `columns.${i}`))
  return { scenario: { settings, columns }, problems: reader.problems }
}

class Reader {
  readonly problems: Record<string, string> = {}

  /** Of the settings that do not matter the defaults are taken, since an error of theirs would have no field. */
  settings(values: Values): ReadSettings {
    const shown = { ...fieldsBeside(values), from: true, to: true }
    const given = Object.fromEntries(Object.entries(values).filter(([name]) => Object.hasOwn(shown, name)))
    const { list = '', ...settings } = this.#each(SETTINGS, given, 'settings')
    const isList = settings.kind === 'list'
    const calls = isList ? this.#attempt('settings.list', () => parseList(String(list))) : undefined
    const read = { ...settings, calls: calls ?? [] }
    if (Object.keys(this.problems).length === 0) this.#attempt('settings.span', () => checkAmount(read))
    return read
  }

  column({ policies: entries, wait, penalty: given, leases: lent }: Column, path: string) {
    // As a policy file has them, so that all errors of all options are found at once.
    const file = { limiters: { api: { policies: entries } } }
    const { limiters, errors } = readPolicies(JSON.stringify(file))
    for (const { path: place, message } of errors)
      this.problems[path + place.replace('limiters.api', '').replace(/\[(\d+)\]/, '.$1')] ??= message
    const policies = limiters[0]?.policies ?? []
    const maxWait = wait && this.#each(WAIT, wait, `${path}.wait`).maxWait
    const leases = lent && this.#each(LEASES, lent, `${path}.leases`)
    const penalty = given as LimiterOptions['penalty']
    if (leases && wait)
      this.problems[`${path}.wait`] ??= 'leases serve no calls that wait: leave one of them out'
    if (penalty && limiters.length > 0)
      this.#attempt(`${path}.penalty`, () => void createLimiter({ policies, penalty }).close())
    return { policies, maxWait, penalty, leases }
  }

  #each<D extends declared.Declaration>(options: D, given: Values, path: string): declared.Settings<D> {
    this.#attempt(path, () => declared.checkNames(options, given, { what: path, advice: 'leave it out' }))
    const entries = Object.entries(options).map(([name, one]) => [
      name,
      this.#attempt(`${path}.${name}`, () => declared.readOption(one, given[name], name, { what: path })),
    ])
    return Object.fromEntries(entries) as declared.Settings<D>
  }

  #attempt<T>(path: string, make: () => T): T | undefined {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof SluiceError) && !(error instanceof TypeError)) throw error
      const [, option = ''] = /^penalty(\.\w+) /.exec(error.message) ?? []
      this.problems[path + option] ??= error.message
      return undefined
    }
  }
}

/** @throws {TypeError} for more calls, before any is repeated, than are decided. */
function checkAmount({ kind, rate, span, window, burst, peak, clients, calls }: ReadSettings): void {
  const even = Math.ceil((rate * span) / 1000)
  const edge = 2 * burst * Math.ceil(span / (2 * window))
  const most = { even, poisson: even, day: even * peak, edge, storm: clients, list: calls.length }[kind]
  if (most <= MOST_CALLS) return
  throw new TypeError(`these are ${most} calls, more than ${MOST_CALLS}: shorten the time, or lower the rate`)
}

/** The value of what was typed: of digits a number, as in TypeScript. */
export function typed(text: string): Typed {
  return /^-?\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : text
}
