import { checkContract } from '../values/contract.js'
import { expected, PolicyError } from '../values/errors.js'
import type { LimiterOptions } from './limiter.js'

/** Every option there is. The type checker sees to it that none is missing. */
const OPTIONS: Record<keyof LimiterOptions, true> = {
  name: true,
  policies: true,
  store: true,
  onStoreError: true,
  deadline: true,
  leases: true,
  enforce: true,
}

/** @throws {PolicyError} INVALID_OPTION for an option that is not known, and for a store that is none. */
export function checkLimiterOptions(options: LimiterOptions): void {
  if (typeof options !== 'object' || options === null) {
    throw expected(PolicyError, 'INVALID_OPTION', 'createLimiter takes an object of options', options)
  }
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(OPTIONS, name)) continue
    throw new PolicyError('INVALID_OPTION', `there is no option '${name}'`)
  }
  if (options.store !== undefined) checkStore(options.store)
}

/** @throws {PolicyError} INVALID_OPTION, which says what to write in the place of what came; VERSION_MISMATCH. */
export function checkStore(store: unknown): void {
  const parts = (store ?? {}) as Record<string, unknown>
  const has = (...names: readonly string[]): boolean =>
    names.every((name) => typeof parts[name] === 'function')
  if (has('keyspace', 'now', 'close')) return checkContract('store', parts)
  throw new PolicyError(
    'INVALID_OPTION',
    `store must be made by memoryStore() or redisStore(): ${adviceOn()}`,
  )

  function adviceOn(): string {
    if (store === null) return 'got null, leave it out for a memory store of its own'
    if (typeof store === 'string') return `got a text, write redisStore(${JSON.stringify(hidden(store))})`
    if (typeof store === 'function') return 'got a function, call it'
    if (has('sendCommand')) return 'got a Redis client, write redisStore(client)'
    if (has('increment') || has('consume'))
      return "got another library's store or limiter, which cannot be used here"
    if (has('then')) return 'got a promise, await it'
    return `got ${typeof store === 'object' ? 'an object without keyspace(), now() and close()' : typeof store}`
  }
}

/** A URL without its password. */
function hidden(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//…@').slice(0, 80)
}
