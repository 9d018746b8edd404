import { clientAddress } from '@sluice/http'
import type { Where } from '@sluice/policies'
import type { Detected } from './detect.js'
import type { Format } from './format.js'
import type { SkipReason } from './ledger.js'

/** One call of a log. */
export interface Call {
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

/** Whose calls are counted together, and which calls. */
export interface Selector {
  /** @default 'ip' */
  readonly by?: string | undefined
  readonly where?: Where | undefined
}

export interface CallOptions {
  readonly selectors: readonly Selector[]
  /** The part of a call that is its cost: `field:PATH`. */
  readonly cost?: string | undefined
  /**
   * Proxies in front that add to X-Forwarded-For.
   * @default 0
   */
  readonly trustProxy?: number | undefined
}

/** Makes calls of the lines that a format has read. */
export class CallReader {
  readonly #format: Format
  readonly #hasDurations: boolean
  readonly #options: CallOptions
  readonly #part: (name: string) => string | undefined

  constructor({ format, hasDurations }: Detected, options: CallOptions) {
    this.#format = format
    this.#hasDurations = hasDurations
    this.#options = options
    this.#part = (name) => format.part(name)
  }

  /** The call of the line that was read last, or why it is none. */
  read(): Call | SkipReason | 'outside' {
    const { time } = this.#format
    if (Number.isNaN(time)) return 'no time'
    const { selectors, cost: costPart } = this.#options
    const keys: (string | undefined)[] = []
    let isOutside = true
    let hasKey = false
    for (const { by, where } of selectors) {
      const isInside = where === undefined || where.matches(this.#part)
      const key = isInside ? this.#key(by) : undefined
      if (isInside) isOutside = false
      if (key !== undefined) hasKey = true
      keys.push(key)
    }
    if (isOutside) return 'outside'
    if (!hasKey) return 'no caller'
    const cost = costPart === undefined ? 1 : costOf(this.#part(costPart))
    if (cost === undefined) return 'no cost'
    const denied = this.#part('status') === '429'
    const duration = this.#hasDurations ? Math.min(this.#format.duration, LONGEST_US) : 0
    return { at: time, duration, keys, cost, denied }
  }

  #key(by = 'ip'): string | undefined {
    const key = by === 'ip' ? this.#address() : this.#part(by)
    return key !== undefined && key.length <= LONGEST_KEY ? key : undefined
  }

  /** The address that the outermost trusted proxy saw, as the adapters name it. */
  #address(): string | undefined {
    const { trustProxy = 0 } = this.#options
    let address = this.#part('ip')
    if (trustProxy > 0) {
      const forwarded = this.#part('forwarded')?.split(',') ?? []
      const i = Math.max(0, forwarded.length - trustProxy)
      address = forwarded[i]?.trim() ?? address
    }
    return clientAddress(address) ?? address
  }
}

/** A call that took longer is counted this long before its end: until then no later call can be decided. */
export const LONGEST_US = 60e6
/** Longest key that limiters take. */
const LONGEST_KEY = 8192
const LARGEST_COST = 2 ** 31

function costOf(text: string | undefined): number | undefined {
  const cost = Number(text)
  return text !== undefined && Number.isInteger(cost) && cost >= 0 && cost <= LARGEST_COST ? cost : undefined
}
