import { copiedText } from '@sluice/core/internal'
import { apiKeyIn, apiKeyKey, behindProxies, clientAddress, joinKey } from '@sluice/http'
import type { Format } from './format.js'
import type { HabitsByCaller } from './habits.js'
import type { SkipReason } from './ledger.js'
import type { ReadOptions, Selector } from './read-options.js'

/** One call of a log. */
export interface LoggedCall {
  /** When it began, in microseconds since 1970; until calls are spread over their unit, when it was logged. */
  at: number
  /** How long before `at` it began. */
  readonly duration: number
  /** The caller for each selector; undefined where the selector does not count the call. */
  readonly keys: readonly (string | undefined)[]
  readonly cost: number
  /** Whether it was answered 429. */
  readonly denied: boolean
}

/**
 * Makes a function that returns the call of the line that `format` read last; or the reason to skip the line; or 'outside' if no
 * selector (`by` whom and `where` calls count) matches the call. `hasDurations`: the format knows how long calls took. `habits`
 * gets the first 4,096 calls, and every 256th of the rest.
 */
export function callReader(
  format: Format,
  hasDurations: boolean,
  options: ReadOptions,
  habits: HabitsByCaller,
): () => LoggedCall | SkipReason | 'outside' {
  const { selectors, cost: costPart } = options
  const isByIp = selectors.some(({ by = 'ip' }) => by === 'ip')
  const line = new CallerLine(format, options)
  let calls = 0
  return () => {
    if (Number.isNaN(format.time)) return 'no time'
    const counting = selectors.map((selector) => line.isCountedBy(selector))
    if (!counting.includes(true)) return 'outside'
    const keys = selectors.map((selector, i) => (counting[i] ? line.keyBy(selector) : undefined))
    if (keys.every((key) => key === undefined)) return isByIp ? 'no address' : 'no caller'
    const cost = costPart === undefined ? 1 : Number(line.part(costPart)?.trim() || NaN)
    if (!Number.isInteger(cost) || cost < 0 || cost > 2 ** 31) return 'no cost'
    const duration = hasDurations ? Math.min(format.duration, LONGEST_US) : 0
    // Habits are no part of calls, of which some would have them and others not: calls are read often.
    const isSampled = ++calls <= 4096 || calls % 256 === 0
    if (isSampled) habits.add(keys[0] ?? '', line.part('path') ?? '', line.part('header:user-agent') ?? '')
    return { at: format.time, duration, keys, cost, denied: line.part('status') === '429' }
  }
}

/** The line that a format read last, and whom it is counted for. */
class CallerLine {
  readonly #addressBehindProxies: (format: Format) => string | undefined
  readonly #mayBeNamed: boolean

  /**
   * Describes whom lines of `format` are counted for: `trustProxy` proxies add the caller's address to X-Forwarded-For, and
   * `callers` says whether names of hosts count too.
   */
  constructor(
    readonly format: Format,
    { trustProxy, callers }: ReadOptions,
  ) {
    this.#addressBehindProxies = behindProxies(LOGGED, trustProxy)
    this.#mayBeNamed = callers === 'names'
  }

  /**
   * A part of the line, such as 'path'. 'ip' is the caller's address, written as adapters write it: behind `trustProxy` proxies the
   * entry of X-Forwarded-For that the outermost of them added, otherwise the address of the connection. With `callers: 'names'` it
   * may be a host name.
   */
  readonly part = (name: string): string | undefined => {
    if (name !== 'ip') return this.format.part(name)
    const client = clientAddress(this.#addressBehindProxies(this.format))
    if (client !== undefined) return client
    const ip = this.format.part('ip')
    return clientAddress(ip) ?? (this.#mayBeNamed ? ip : undefined)
  }

  /** Whether a selector counts the call: its condition `where` holds, and it does not exempt the caller. */
  isCountedBy(selector: Selector): boolean {
    const { where } = selector
    return (!where || where.matches(this.part)) && !this.#isExempt(selector)
  }

  /** Whether the selector exempts the caller, by his address or by the key that adapters give him. */
  #isExempt({ exempt, by = 'ip' }: Selector): boolean {
    if (!exempt) return false
    const address = this.#wholeAddress()
    if (address !== undefined && exempt.hasAddress(address)) return true
    if (exempt.keys.size === 0) return false
    return exempt.keys.has(keyInApp(by, this.part(by)) ?? `ip:${this.part('ip') ?? 'unknown'}`)
  }

  /** The caller's address with all of its bits: a key has only the first ones of an IPv6 address. */
  #wholeAddress(): string | undefined {
    return (
      clientAddress(this.#addressBehindProxies(this.format), 128) ??
      clientAddress(this.format.part('ip'), 128)
    )
  }

  /**
   * The key of the caller by a selector; with `orAddress` the address, if the line lacks what the selector counts by. Undefined
   * without a key, and for one longer than limiters take. It is a copy, which does not keep the line in memory.
   */
  keyBy({ by = 'ip', orAddress = false }: Selector): string | undefined {
    const own =
      by.startsWith('header:') && orAddress
        ? apiKeyIn(by.slice('header:'.length), this.part(by))
        : this.part(by)
    const key = orAddress ? own || this.part('ip') : own
    return key !== undefined && key.length <= 8192 ? copiedText(key) : undefined
  }
}

/** The key that adapters give a caller, by the `text` that names him in a log; undefined for one whom they count by address. */
function keyInApp(by: string, text: string | undefined): string | undefined {
  if (by === 'ip' || !text) return undefined
  if (by.startsWith('field:')) return joinKey('user', text)
  const apiKey = apiKeyIn(by.slice('header:'.length), text)
  return apiKey && apiKeyKey(apiKey)
}

/** A call that took longer is counted this long before its end: until then no later call can be decided. */
export const LONGEST_US = 60e6

/** How a caller's address is read of a line, as of a request. */
const LOGGED = {
  header: (format: Format) => format.part('forwarded'),
  socketAddress: (format: Format) => format.part('ip'),
}
