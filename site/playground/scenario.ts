import { createLimiter, type LimiterOptions, type Policy, SluiceError } from '@sluice/core'
import {
  type Declaration,
  duration,
  GCRA,
  LEAKY_BUCKET,
  number,
  oneOf,
  POLICY,
  readOne,
  type Settings,
  SLIDING_WINDOW,
  TOKEN_BUCKET,
  unchecked,
  whole,
} from '@sluice/core/internal'
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

/** One limiter beside others. */
export interface Column {
  readonly policies: readonly Values[]
  /** Calls wait for their turn, at most for so long. */
  readonly maxWait?: Typed
  readonly penalty?: Values
  /** Several processes that share a store, each with leases. */
  readonly leases?: Values
}

export const MOST_CALLS = 200_000
export const MOST_COLUMNS = 4

/** Kinds of traffic, and the options that each has of its own. */
export const KINDS = {
  even: ['rate'],
  poisson: ['rate'],
  edge: ['window', 'burst'],
  storm: ['clients', 'obey', 'retry'],
  day: ['rate', 'peak'],
  list: ['list'],
} as const
type Kind = keyof typeof KINDS

/** Options of traffic and of what is shown of it, with their defaults. Durations are in milliseconds. */
export const SETTINGS = {
  kind: oneOf(Object.keys(KINDS) as Kind[], 'even'),
  rate: number(0.001, 100_000, 10),
  window: duration('1ms', '1d', '10s'),
  burst: whole(1, 10_000, 10),
  clients: whole(1, 10_000, 30),
  obey: whole(0, 100, 50),
  retry: duration('10ms', '1h', '200ms'),
  peak: whole(1, 100, 8),
  span: duration('1s', '1d', '30s'),
  cost: whole(0, 2 ** 31, 1),
  keys: whole(1, 1000, 1),
  seed: whole(0, 2 ** 31, 1),
  /** The real cost, which a call is settled at; left out it is the one that was charged. */
  real: whole(0, 2 ** 31),
  takes: duration('1ms', '1h', '1s'),
  /** One call a line, where `kind` is 'list': its time, cost and key. */
  list: unchecked<Typed | undefined>(),
  /** The time that is shown, of which `to: 0` is the end, and the key whose allowance is. */
  from: whole(0, 86_400_000, 0),
  to: whole(0, 86_400_000, 0),
  key: whole(1, 1000, 1),
} satisfies Declaration

/** The options of each algorithm's factory. */
export const ALGORITHMS: Readonly<Record<string, Declaration>> = {
  slidingLog: POLICY,
  gcra: GCRA,
  tokenBucket: TOKEN_BUCKET,
  leakyBucket: LEAKY_BUCKET,
  slidingWindow: SLIDING_WINDOW,
  fixedWindow: POLICY,
}

const WAIT = { maxWait: duration('1ms', '1d') }
/** What a limiter checks, which these are handed to. */
const PENALTY = {
  after: unchecked(),
  block: unchecked(),
  factor: unchecked(),
  maxBlock: unchecked(),
  forgetAfter: unchecked(),
  then: oneOf(['window', 'fresh'], 'window'),
}
const LEASES = { ttl: duration('1ms', '1h', '1s'), size: whole(1, 1000, 10), processes: whole(1, 16, 4) }

/** What limits may have beside policies: its options, and what it begins as. */
export const EXTRAS = [
  { name: 'maxWait', title: 'Wait', declared: WAIT, start: '10s' },
  { name: 'penalty', title: 'Penalty', declared: PENALTY, start: { after: 3, block: '10s', factor: 2 } },
  { name: 'leases', title: 'Leases', declared: LEASES, start: { ttl: '1s', size: 10, processes: 4 } },
] as const

export interface ReadColumn {
  readonly policies: readonly Policy[]
  readonly maxWait: number | undefined
  readonly penalty: LimiterOptions['penalty']
  readonly leases: Settings<typeof LEASES> | undefined
}

/** Traffic and what is shown of it, checked. */
export type ReadSettings = Omit<Settings<typeof SETTINGS>, 'list'> & { readonly calls: readonly PastedCall[] }

/** A scenario that can be run. */
export interface ReadScenario {
  readonly settings: ReadSettings
  readonly columns: readonly ReadColumn[]
}

/** The library's own errors, by the field that they are about: `columns.0.policies.1.limit`. */
export type Problems = Readonly<Record<string, string>>

/** Checks every field. Without problems the scenario can be run. */
export function readScenario(typed: Scenario): { scenario: ReadScenario; problems: Problems } {
  const reader = new Reader()
  const settings = reader.settings(typed.settings)
  const columns = typed.columns.map((column, i) => reader.column(column, `columns.${i}`))
  return { scenario: { settings, columns }, problems: reader.problems }
}

class Reader {
  readonly problems: Record<string, string> = {}

  settings(values: Values): ReadSettings {
    const { list = '', ...settings } = this.#each(SETTINGS, values, 'settings')
    const calls =
      settings.kind === 'list' ? this.#attempt('settings.list', () => parseList(String(list))) : []
    const read = { ...settings, calls: calls ?? [] }
    if (Object.keys(this.problems).length === 0) this.#attempt('settings.rate', () => checkAmount(read))
    return read
  }

  column(
    { policies: entries, maxWait: wait, penalty: given, leases: lent }: Column,
    path: string,
  ): ReadColumn {
    const policies = this.#policies(entries, path)
    const { maxWait } = this.#each(WAIT, { ...(wait !== undefined && { maxWait: wait }) }, path)
    const leases = lent && this.#each(LEASES, lent, `${path}.leases`)
    const penalty = given as LimiterOptions['penalty']
    if (leases && maxWait !== undefined)
      this.problems[`${path}.maxWait`] ??= 'leases serve no calls that wait: leave one of them out'
    if (policies.length === entries.length) {
      const make = () => void createLimiter({ policies, ...(penalty && { penalty }) }).close()
      this.#attempt(`${path}.${penalty ? 'penalty' : 'policies'}`, make)
    }
    return { policies, maxWait, penalty, leases }
  }

  /** The policies as a policy file has them, so that all errors of all options are found at once. */
  #policies(policies: readonly Values[], path: string): readonly Policy[] {
    const { limiters, errors } = readPolicies(JSON.stringify({ limiters: { api: { policies } } }))
    for (const { path: place, message } of errors)
      this.problems[path + place.replace('limiters.api', '').replace(/\[(\d+)\]/, '.$1')] ??= message
    return limiters[0]?.policies ?? []
  }

  #each<D extends Declaration>(declared: D, given: Values, path: string): Settings<D> {
    const entries = Object.entries(declared).map(([name, one]) => [
      name,
      this.#attempt(`${path}.${name}`, () => readOne(one, given[name], name, { what: path })),
    ])
    return Object.fromEntries(entries) as Settings<D>
  }

  #attempt<T>(path: string, make: () => T): T | undefined {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof SluiceError) && !(error instanceof TypeError)) throw error
      this.problems[path] ??= error.message
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

/** The value of what was typed. */
export function typed(text: string): Typed {
  return /^-?\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : text
}

/** The values with one that was typed. An empty one is left out, so that its default holds. */
export function withTyped(values: Values, name: string, text: string): Values {
  const { [name]: _, ...others } = values
  return text === '' ? others : { ...values, [name]: typed(text) }
}
