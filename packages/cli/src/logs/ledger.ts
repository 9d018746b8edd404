/*
 * The book of lines: each line of a log is read, or skipped for a reason. Nothing is left out of it.
 */

/** Why a line was not read. */
export type SkipReason =
  | `${'empty' | 'comment' | 'part of a'} line`
  | `${'no' | 'half of a'} call`
  | `${'NUL bytes' | 'longer than 256 KiB' | 'not in the format' | 'clock ran back' | 'cut off'}`
  | `no ${'time' | 'caller' | 'address' | 'cost'}`

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
  /** Lines that look like calls and were skipped. */
  unread = 0
  /** Lines by the fields that they have, and how many of them were read as calls or parts of them. */
  readonly groups = new Map<string, { lines: number; read: number }>()
  readonly skipped = new Map<SkipReason, Skipped>()

  /** Counts a line that was skipped for a reason. The first line of each reason is kept for the report, cut to 160 characters. */
  skip(reason: SkipReason, text: string, source: string, line: number): void {
    const isCall = UNREAD.test(reason) || (!NO_CALL.test(reason) && isLikeCall(text))
    if (isCall) this.unread++
    const known = this.skipped.get(reason)
    if (known) known.count++
    else this.skipped.set(reason, { count: 1, source, line, text: text.slice(0, 160) })
  }

  /** Counts a line that was read, or skipped for a reason, under the fields that it has. */
  group(name: string, isRead: boolean): void {
    const known = this.groups.get(name) ?? { lines: 0, read: 0 }
    this.groups.set(name, { lines: known.lines + 1, read: known.read + (isRead ? 1 : 0) })
  }

  /**
   * Counts the first line of a call as read, because the second line was found. Until then it was counted as skipped, as 'half of a
   * call', in the group `name`.
   */
  join(name: string): void {
    this.read++
    this.unread--
    this.groups.get(name)!.read++
    const half = this.skipped.get('half of a call')!
    if (--half.count === 0) this.skipped.delete('half of a call')
  }
}

/** Reasons for lines that are calls, and for those that are none. Of the others the text decides: a method, and behind it a status. */
const UNREAD = /^(clock ran back|half of a call|no (time|address))$/
const NO_CALL = /^(empty|comment|part of a) line$|^no (call|caller|cost)$/
const METHOD = /\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT)\b/
const STATUS = /(?<![\w.:-])[1-5]\d\d(?![\w.:-])/

/** Whether a text has a method, and after it a status. One expression for both would be slow: it would begin anew at each method. */
function isLikeCall(text: string): boolean {
  const at = text.search(METHOD)
  return at >= 0 && STATUS.test(text.slice(at))
}
