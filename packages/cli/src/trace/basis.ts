import type { LoggedCall } from '../logs/calls.js'
import type { Skipped } from '../logs/ledger.js'
import type { Reading } from '../logs/read-logs.js'

/** The lines that a report rests on. Lines read and lines skipped add up to the lines there. */
export interface Basis {
  readonly lines: number
  readonly read: number
  /** Lines that were read and are outside `where`. */
  readonly outside: number
  /** Lines that look like calls and were not read. */
  readonly unread: number
  /** Lines by the fields that they have, and how many of them were read. */
  readonly groups: Readonly<Record<string, { readonly lines: number; readonly read: number }>>
  readonly skipped: Readonly<Record<string, Skipped>>
  readonly calls: number
  readonly callers: number
  /** RFC 3339; null without a call. */
  readonly from: string | null
  readonly to: string | null
  /** The unit of the log's times in milliseconds. */
  readonly resolutionMs: number
  /** The share of calls that were answered 429, from 0 to 1; null where a log does not say it. */
  readonly denied: number | null
  readonly formats: Readonly<Record<string, string>>
  /** Whether the logs were read to their end. */
  readonly complete: boolean
}

/** Counts calls for the basis of a report. */
export class Survey {
  calls = 0
  first = Infinity
  last = -Infinity
  #denied = 0

  /** Counts a call, and whether it was answered 429 (`denied`). Keeps the earliest and the latest time. */
  add(call: LoggedCall): void {
    this.calls++
    if (call.denied) this.#denied++
    if (call.at < this.first) this.first = call.at
    if (call.at > this.last) this.last = call.at
  }

  /**
   * The figures of the log that a report rests on: its lines by the ledger, and the calls that were counted here, which are of so
   * many `callers`. They are not `complete` if `signal` has interrupted the reading.
   */
  basis({ ledger, resolution, formats, hasStatus }: Reading, callers: number, signal?: AbortSignal): Basis {
    const { skipped, groups, ...counts } = ledger
    return {
      ...counts,
      groups: Object.fromEntries(groups),
      skipped: Object.fromEntries(skipped),
      calls: this.calls,
      callers,
      from: timeOf(this.first),
      to: timeOf(this.last),
      resolutionMs: resolution / 1000,
      denied: hasStatus ? this.#denied / Math.max(1, this.calls) : null,
      formats: Object.fromEntries(formats),
      complete: signal?.aborted !== true,
    }
  }
}

/** An instant in microseconds since 1970 as text (RFC 3339); null for an infinite one, which stands for none. */
export const timeOf = (us: number): string | null =>
  Number.isFinite(us) ? new Date(us / 1000).toISOString() : null

/** A log cannot judge what happens within a few units of its times: a scale of fewer units gives no figure. */
export const LEAST_UNITS = 10
