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

/** Denials as a process posts them: as many of the first as take 8 kB together. One that is longer than what is left is left out. */
export function packed(denials: readonly Denial[]): readonly unknown[] {
  let left = 7999 // without the brackets, and with a comma more than there are
  return denials
    .map((denial) => FIELDS.map((field) => denial[field]))
    .filter((denial) => {
      const after = left - Buffer.byteLength(JSON.stringify(denial)) - 1
      if (after >= 0) left = after
      return after >= 0
    })
}

/** The denial that `packed` wrote as a list. */
export function unpacked(list: readonly unknown[]): Denial {
  const denial = Object.fromEntries(FIELDS.map((field, i) => [field, list[i] ?? Infinity]))
  return denial as unknown as Denial
}
