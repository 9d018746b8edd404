import { createLimiter, type LimiterOptions, type Policy, SluiceError } from '@sluice/core'
import {
  type Declaration,
  duration,
  oneOf,
  option,
  readOne,
  REFUSED,
  type Settings,
  whole,
} from '@sluice/core/internal'
import { readPolicies } from '@sluice/policies'
import { type PastedCall, parseList } from './pasted.js'

/** All that is set in the playground, as it was typed: numbers may be wrong, and are shown with the error beside them. */
export interface Scenario {
  readonly traffic: Readonly<Record<string, Typed>> & { readonly kind: string }
  /** One call a line, where `traffic.kind` is 'list': its time, cost and key. */
  readonly list: string
  readonly columns: readonly Column[]
  readonly view: Readonly<Record<string, Typed>>
}

/** A text of digits is a number, as in TypeScript; every other text stays one. */
export type Typed = string | number

/** One limiter beside others. */
export interface Column {
  readonly policies: readonly Readonly<Record<string, Typed>>[]
  /** Calls wait for their turn, at most for so long. */
  readonly maxWait?: Typed
  readonly penalty?: Readonly<Record<string, Typed>>
  /** Several processes that share a store, each with leases. */
  readonly leases?: Readonly<Record<string, Typed>>
}

export const KINDS = ['even', 'poisson', 'edge', 'storm', 'day', 'list'] as const
export type Kind = (typeof KINDS)[number]

export const MOST_CALLS = 200_000
export const MOST_COLUMNS = 4

/** Options of traffic, and their defaults. Durations are in milliseconds. */
export const TRAFFIC = {
  kind: oneOf(KINDS, 'even'),
  rate: option('a number of calls a second from 0.001 to 100000', rateOf, 10),
  span: duration('1s', '1d', '30s'),
  cost: whole(0, 2 ** 31, 1),
  keys: whole(1, 1000, 1),
  seed: whole(0, 2 ** 31, 1),
  window: duration('1ms', '1d', '10s'),
  burst: whole(1, 10_000, 10),
  clients: whole(1, 10_000, 30),
  obey: whole(0, 100, 50),
  retry: duration('10ms', '1h', '200ms'),
  peak: whole(1, 100, 8),
  real: whole(-1, 2 ** 31, -1),
  takes: duration('1ms', '1h', '1s'),
} satisfies Declaration

/** The part of the time that is shown, and whose allowance: `to: 0` is the end. */
export const VIEW = {
  from: whole(0, 86_400_000, 0),
  to: whole(0, 86_400_000, 0),
  key: whole(1, 1000, 1),
} satisfies Declaration

const LEASES = { ttl: duration('1ms', '1h', '1s'), size: whole(1, 1000, 10), processes: whole(1, 16, 4) }
const WAIT = duration('1ms', '1d')

export type Traffic = Settings<typeof TRAFFIC> & { readonly calls: readonly PastedCall[] }

export interface ReadColumn {
  readonly policies: readonly Policy[]
  readonly maxWait: number | undefined
  readonly penalty: LimiterOptions['penalty']
  readonly leases: Settings<typeof LEASES> | undefined
}

/** A scenario that can be run. */
export interface ReadScenario {
  readonly traffic: Traffic
  readonly columns: readonly ReadColumn[]
  readonly view: Settings<typeof VIEW>
}

/** The library's own errors, by the field that they are about: `columns.0.policies.1.limit`. */
export type Problems = Readonly<Record<string, string>>

/** Checks every field. Without problems the scenario can be run. */
export function readScenario(scenario: Scenario): { scenario: ReadScenario; problems: Problems } {
  const problems: Record<string, string> = {}
  const attempt = <T>(path: string, make: () => T): T | undefined => {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof SluiceError) && !(error instanceof TypeError)) throw error
      problems[path] ??= error.message
      return undefined
    }
  }
  const all = <D extends Declaration>(declared: D, given: object, path: string): Settings<D> => {
    const entries = Object.entries(declared).map(([name, one]) => {
      const value = (given as Record<string, unknown>)[name]
      return [name, attempt(`${path}.${name}`, () => readOne(one, value, name, { what: path }))]
    })
    return Object.fromEntries(entries) as Settings<D>
  }
  const traffic = all(TRAFFIC, scenario.traffic, 'traffic')
  const calls = traffic.kind === 'list' ? attempt('traffic.list', () => parseList(scenario.list)) : []
  const read = { ...traffic, calls: calls ?? [] }
  attempt('traffic.rate', () => checkAmount(read, problems))
  const columns = scenario.columns.map((column, i): ReadColumn => {
    const path = `columns.${i}`
    const policies = policiesOf(column, path, problems)
    const wait = column.maxWait
    const maxWait =
      wait === undefined
        ? undefined
        : attempt(`${path}.maxWait`, () => readOne(WAIT, wait, 'maxWait', { what: 'acquire' }))
    const leases = column.leases && all(LEASES, column.leases, `${path}.leases`)
    const penalty = column.penalty as unknown as ReadColumn['penalty']
    if (leases && maxWait !== undefined)
      problems[`${path}.maxWait`] ??= 'leases serve no calls that wait: leave one of them out'
    if (policies.length === column.policies.length) {
      attempt(
        `${path}.${penalty ? 'penalty' : 'policies'}`,
        () => void createLimiter({ policies, ...(penalty && { penalty }) }).close(),
      )
    }
    return { policies, maxWait, penalty, leases }
  })
  const view = all(VIEW, scenario.view, 'view')
  return { scenario: { traffic: read, columns, view }, problems }
}

/** The policies of a column as a policy file has them, so that all errors of all options are found at once. */
function policiesOf({ policies }: Column, path: string, problems: Record<string, string>): readonly Policy[] {
  const { limiters, errors } = readPolicies(JSON.stringify({ limiters: { api: { policies } } }))
  for (const { path: place, message } of errors) {
    const inner = place.replace('limiters.api', '').replace(/\[(\d+)\]/, '.$1')
    problems[`${path}${inner}`] ??= message
  }
  return limiters[0]?.policies ?? []
}

/** Calls that the traffic makes at most, before any is repeated. */
function mostArrivals({ kind, rate, span, window, burst, peak, clients, calls }: Traffic): number {
  const even = Math.ceil((rate * span) / 1000)
  const edges = 2 * burst * Math.ceil(span / (2 * window))
  return { even, poisson: even, day: even * peak, edge: edges, storm: clients, list: calls.length }[kind]
}

/** @throws {TypeError} for more calls than are decided. */
function checkAmount(traffic: Traffic, problems: Problems): void {
  if (Object.keys(problems).length > 0) return
  const calls = mostArrivals(traffic)
  if (calls > MOST_CALLS)
    throw new TypeError(
      `these are ${calls} calls, more than ${MOST_CALLS}: shorten the time, or lower the rate`,
    )
}

function rateOf(value: unknown): number | typeof REFUSED {
  return typeof value === 'number' && value >= 0.001 && value <= 100_000 ? value : REFUSED
}

/** The value of what was typed. */
export function typed(text: string): Typed {
  return /^-?\d{1,15}(\.\d{1,6})?$/.test(text) ? Number(text) : text
}

/** A scenario of one column, for what is not said. */
export const DEFAULT: Scenario = {
  traffic: { kind: 'poisson', rate: 4, span: '30s' },
  list: '',
  columns: [
    { policies: [{ algorithm: 'slidingLog', limit: 20, window: '10s' }] },
    { policies: [{ algorithm: 'gcra', limit: 20, window: '10s', burst: 5 }] },
  ],
  view: {},
}
