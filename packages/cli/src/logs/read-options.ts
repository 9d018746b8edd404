import type { Exempt, Where } from '@sluice/policies'

/** Whose calls are counted together, and which calls. */
export interface Selector {
  /** @default 'ip' */
  readonly by?: string | undefined
  readonly where?: Where | undefined
  /** Callers that do not count. */
  readonly exempt?: Exempt | undefined
  /**
   * Whether a call without the header or the field of `by` counts for its address, as adapters count it.
   * @default false: it is left out
   */
  readonly orAddress?: boolean
}

/** How logs are read. */
export interface ReadOptions {
  readonly selectors: readonly Selector[]
  /** The part of a call that is its cost: `field:PATH`. */
  readonly cost?: string | undefined
  /**
   * Proxies in front that add to X-Forwarded-For.
   * @default 0
   */
  readonly trustProxy?: number | undefined
  /** The format of the lines; found from the first 1,000 lines if left out. */
  readonly format?: string | undefined
  /**
   * Whether a caller may have a name where his address is expected, as servers write it that look names up.
   * @default 'addresses'
   */
  readonly callers?: 'addresses' | 'names' | undefined
  /** Parts that the log must have, besides those of `selectors` and `cost`. */
  readonly needs?: readonly string[] | undefined
  /** Places of fields in lines of JSON: `{ ip: 'request.client_ip' }`. */
  readonly fields?: FieldNames | undefined
  /**
   * How far back times may run, in milliseconds.
   * @default 5000
   */
  readonly skewMs?: number | undefined
  /** Ends the reading: what was read until then counts. */
  readonly signal?: AbortSignal | undefined
}

/** The places that `--field` names: `ip=request.client_ip`. */
export type FieldNames = Readonly<Record<string, string>>
