import { ownText } from '@sluice/core/internal'
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
  const { selectors, cost: costPart, trustProxy, callers } = options
  const isByIp = selectors.some(({ by = 'ip' }) => by === 'ip')
  const address = behindProxies(LOGGED, trustProxy)
  /**
   * A part of the line that was read last, such as 'path'. 'ip' is the caller's address, written as adapters write it: behind
   * `trustProxy` proxies the entry of X-Forwarded-For that the outermost of them added, otherwise the address of the connection.
   * With `callers: 'names'` it may be a host name.
   */
  const part = (name: string): string | undefined => {
    if (name !== 'ip') return format.part(name)
    const client = clientAddress(address(format))
    if (client !== undefined) return client
    const ip = format.part('ip')
    return clientAddress(ip) ?? (callers === 'names' ? ip : undefined)
  }
  /**
   * The key of the line's caller by a selector; with `orAddress` the address, if the line lacks what the selector counts by.
   * Undefined without a key, and for one longer than limiters take. It is a copy, which does not keep the line in memory.
   */
  const keyOf = ({ by = 'ip', orAddress = false }: Selector): string | undefined => {
    const own = by.startsWith('header:') && orAddress ? apiKeyIn(by.slice(7), part(by)) : part(by)
    const key = orAddress ? own || part('ip') : own
    return key !== undefined && key.length <= 8192 ? ownText(key) : undefined
  }
  /** Whether the selector exempts the line's caller, by his address or by the key that adapters give him. */
  const isExempt = ({ exempt, by = 'ip' }: Selector): boolean => {
    if (!exempt) return false
    const wholeAddress = clientAddress(address(format), 128) ?? clientAddress(format.part('ip'), 128)
    if (wholeAddress !== undefined && exempt.hasAddress(wholeAddress)) return true
    return exempt.keys.size > 0 && exempt.keys.has(keyInApp(by, part(by)) ?? `ip:${part('ip') ?? 'unknown'}`)
  }
  let calls = 0
  return () => {
    if (Number.isNaN(format.time)) return 'no time'
    let isInside = false
    const keys = selectors.map((selector) => {
      if ((selector.where && !selector.where.matches(part)) || isExempt(selector)) return undefined
      isInside = true
      return keyOf(selector)
    })
    if (!isInside) return 'outside'
    if (keys.every((key) => key === undefined)) return isByIp ? 'no address' : 'no caller'
    const cost = costPart === undefined ? 1 : Number(part(costPart)?.trim() || NaN)
    if (!Number.isInteger(cost) || cost < 0 || cost > 2 ** 31) return 'no cost'
    const duration = hasDurations ? Math.min(format.duration, LONGEST_US) : 0
    // Not a part of calls, of which some would have it and others not: they are read often.
    if (++calls <= 4096 || calls % 256 === 0)
      habits.add(keys[0] ?? '', part('path') ?? '', part('header:user-agent') ?? '')
    return { at: format.time, duration, keys, cost, denied: part('status') === '429' }
  }
}

/** The key that adapters give a caller, by the `text` that names him in a log; undefined for one whom they count by address. */
function keyInApp(by: string, text: string | undefined): string | undefined {
  if (by === 'ip' || !text) return undefined
  if (by.startsWith('field:')) return joinKey('user', text)
  const apiKey = apiKeyIn(by.slice(7), text)
  return apiKey && apiKeyKey(apiKey)
}

/** A call that took longer is counted this long before its end: until then no later call can be decided. */
export const LONGEST_US = 60e6

/** How a caller's address is read of a line, as of a request. */
const LOGGED = {
  header: (format: Format) => format.part('forwarded'),
  socketAddress: (format: Format) => format.part('ip'),
}
