/*
 * The book of lines: each line of a log is read, or skipped for a reason. Nothing is left out of it.
 */

/** Why a line was not read. */
export type SkipReason =
  | `${'empty' | 'comment' | 'part of a'} line`
  | `${'NUL bytes' | 'longer than 256 KiB' | 'not in the format' | 'clock ran back' | 'cut off'}`
  | `no ${'time' | 'caller' | 'cost'}`

/** The lines that were skipped for one reason, and the first of them. */
export interface Skipped {
  count: number
  readonly source: string
  readonly line: number
  readonly text: string
}

/** The lines of all sources. */
export class Ledger {
  lines = 0
  /** Lines that were read, and of these the ones outside `where`. */
  read = 0
  outside = 0
  readonly skipped = new Map<SkipReason, Skipped>()

  /**
   * Counts a line that was skipped for this reason. The first line of each reason is kept, cut to 160 characters, as the
   * example that the report shows.
   */
  skip(reason: SkipReason, text: string, source: string, line: number): void {
    const known = this.skipped.get(reason)
    if (known) known.count++
    else this.skipped.set(reason, { count: 1, source, line, text: text.slice(0, 160) })
  }
}
