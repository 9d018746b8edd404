import type { StoredRecord } from '../stores/store.js'

export type RecordKind = 'override' | 'block' | 'hold'

/** The content of a record: JSON in the store. */
export interface RecordContent {
  /** As the caller gave it. */
  readonly key: string
  readonly reason?: string | undefined
  readonly by?: string | undefined
  readonly exempt?: true | undefined
  readonly factor?: number | undefined
  /** For each policy of lists of these shapes: its limit, its limit and capacity, or null where both stay. */
  readonly limits?: readonly (number | readonly [limit: number, capacity: number] | null)[] | undefined
  readonly shapes?: string | undefined
}

/** What a record is about: a key as stores keep it, of the limiters of a name. */
export interface RecordSubject {
  readonly kind: RecordKind
  readonly limiter: string
  readonly stored: string
}

/** A record of one key. Instants are microseconds on the store's clock. */
export interface KeyRecord extends RecordSubject, Omit<StoredRecord, 'text'> {
  readonly content: RecordContent
}

/** The id of a record. In JSON two lone surrogates stay apart, and the line break is the first. */
export function recordId({ kind, limiter, stored }: RecordSubject): string {
  return `${kind} ${limiter}\n${JSON.stringify(stored)}`
}

/** Reads a record of a store; undefined for one that was removed, or that this version does not know. */
export function readRecord({ text, ...rest }: StoredRecord): KeyRecord | undefined {
  const [, kind, limiter, stored] = /^(override|block|hold) (.+)\n([^]*)$/.exec(rest.id) ?? []
  try {
    const subject = { kind: kind as RecordKind, limiter: limiter!, stored: JSON.parse(stored!) as string }
    return { ...rest, ...subject, content: JSON.parse(text) as RecordContent }
  } catch {
    return undefined
  }
}
