/** The last denial of one key. */
export interface Denial {
  /** As `denialId` makes it. */
  readonly id: string
  /** The name of the limiter; of a permit that was refused, of the semaphore. */
  readonly limiter: string
  /** The binding policy. */
  readonly policy: string
  /** The key as stores keep it, or its hash. */
  readonly key: string
  /** As `decision.reason` has it. Later versions may know further ones. */
  readonly reason: string
  /** Milliseconds from `at`; Infinity where no wait helps. */
  readonly retryAfterMs: number
  /** Milliseconds since the epoch, by the clock of the process that denied. */
  readonly at: number
}

/** A denial travels as a list of these, which is shorter than an object. JSON writes a wait without an end, Infinity, as null. */
const FIELDS = ['id', 'limiter', 'policy', 'key', 'reason', 'retryAfterMs', 'at'] as const

/** Denials as a process posts them: each as a list of its fields, and only those that fit into 8 kB of JSON, the first ones first. */
export function packed(denials: readonly Denial[]): readonly unknown[] {
  const lists: unknown[] = []
  let bytesLeft = BYTES_OF_LISTS
  for (const denial of denials) {
    const list = FIELDS.map((field) => denial[field])
    const bytes = Buffer.byteLength(JSON.stringify(list)) + 1
    if (bytes > bytesLeft) continue
    bytesLeft -= bytes
    lists.push(list)
  }
  return lists
}

/** 8,000 less two brackets, plus the comma after the last denial, which is not there. */
const BYTES_OF_LISTS = 7999

/** The denial that `packed` wrote as a list. A wait without an end, which JSON writes as null, is Infinity again. */
export function unpacked(list: readonly unknown[]): Denial {
  const denial = Object.fromEntries(FIELDS.map((field, i) => [field, list[i] ?? Infinity]))
  return denial as unknown as Denial
}
