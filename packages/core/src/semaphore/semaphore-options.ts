import { checkStore } from '../limiter/limiter-options.js'
import { deadline } from '../stores/guard-options.js'
import type { Store } from '../stores/store.js'
import type { Duration } from '../values/duration.js'
import { expectedButGot, InputError, PolicyError } from '../values/errors.js'
import * as option from '../values/options.js'
import type { AdaptiveLimit } from './adaptive-limit.js'

export interface SemaphoreOptions {
  /**
   * Semaphores of one name in one store share their permits. 1 to 64 characters of printable ASCII; required with a
   * `store`.
   * @default 'default'
   */
  readonly name?: string
  /**
   * Most permits held at once, for each key: a whole number from 1 to 1,000,000, or `adaptive()` of @sluice/outbound for a limit
   * that is not known. That one is of this process alone, so it takes no `store`.
   */
  readonly limit: number | AdaptiveLimit
  /**
   * How long a permit stays taken after its process died, 1 s to 1 hour. A process that lives renews its permits. Not used
   * with a memory store. A number is in milliseconds.
   * @default '30s'
   */
  readonly lease?: Duration
  /**
   * Where permits are kept.
   * @default a `memoryStore()` of its own, which `close()` closes too
   */
  readonly store?: Store
  /**
   * The longest the store may take to answer a call, 1 ms to 1 minute; a number is in milliseconds.
   * @default '50ms'
   */
  readonly deadline?: Duration
  /**
   * Called with the key of a permit that was lost while it was held: the store lost its data, and others took all permits
   * before this one was renewed. A listener of the event 'lost'.
   */
  readonly onLost?: (key: string) => void
}

export interface SemaphoreAcquireOptions {
  /**
   * The longest to wait for a permit, up to 1 day. With 0 the call is denied at once if no permit is free. A
   * number is in milliseconds.
   * @default '30s'
   */
  readonly maxWait?: Duration
  /** Takes the call out of the queue and rejects it with the signal's reason. */
  readonly signal?: AbortSignal
}

/** Most permits held at once, for each key. */
export const permitLimit = option.required(option.whole(1, 1_000_000, undefined, 'INVALID_LIMIT'))

const limitOrAdaptive: option.Option<number | AdaptiveLimit> = {
  ...permitLimit,
  accepts: `${permitLimit.accepts} or adaptive()`,
  parse: (value, name) =>
    typeof (value as AdaptiveLimit | null)?.follow === 'function'
      ? (value as AdaptiveLimit)
      : permitLimit.parse(value, name),
}

const SEMAPHORE = {
  name: option.printableName,
  limit: limitOrAdaptive,
  lease: option.duration('1s', '1h', '30s'),
  store: option.checkedBy(checkStore),
  deadline,
  onLost: option.func<(key: string) => void>(),
} satisfies option.DeclarationOf<SemaphoreOptions>

/**
 * The options of `createSemaphore`, checked and with their defaults.
 * @throws {PolicyError} INVALID_OPTION, INVALID_LIMIT, INVALID_NAME, INVALID_DURATION, NAME_REQUIRED.
 */
export function readSemaphoreOptions(options: SemaphoreOptions): option.Settings<typeof SEMAPHORE> {
  const settings = option.readOptions(SEMAPHORE, options, { what: 'createSemaphore' })
  if (settings.store === undefined) return settings
  if (typeof settings.limit !== 'number') {
    throw new PolicyError('INVALID_OPTION', 'an adaptive limit is of one process: leave out store')
  }
  if (settings.name !== undefined) return settings
  throw new PolicyError('NAME_REQUIRED', 'a semaphore with a store needs a name: others may share the store')
}

const ACQUIRE = {
  maxWait: option.duration(0, '1d', '30s'),
  signal: option.unchecked<AbortSignal | undefined>(),
} satisfies option.DeclarationOf<SemaphoreAcquireOptions>

/**
 * The options of a semaphore's `acquire`, checked and with their defaults. `maxWait` becomes milliseconds. A number in place of
 * the options is most likely the wait itself, which other packages take, so the code of that error is INVALID_DURATION.
 * @throws {InputError} INVALID_OPTION, INVALID_DURATION.
 */
export function readAcquireOptions(options: SemaphoreAcquireOptions): option.Settings<typeof ACQUIRE> {
  if (typeof options === 'object' && options !== null) {
    return option.readOptions(ACQUIRE, options, { what: 'acquire', error: InputError })
  }
  const bound = "the options of a call must be an object like { maxWait: '10s' }"
  throw expectedButGot(InputError, 'INVALID_DURATION', bound, options)
}
