/** How many units were allowed and denied. */
export interface Count {
  readonly allowed: number
  readonly denied: number
}

/** The answers to one caller, in units: calls, or the cost of each. All instants are of one clock, in milliseconds. */
export class Tally {
  /** Calls that were neither allowed nor properly denied. */
  failed = 0
  readonly #total = { allowed: 0, denied: 0 }
  #recent: { readonly at: number; readonly result: keyof Count; readonly units: number }[] = []
  #firstAskedAt = Infinity
  #lastAnsweredAt = 0

  /** Counts one answer: `units` as allowed or denied, a failure as one call. The instants are in milliseconds. */
  add(result: keyof Count | 'failed', askedAt: number, answeredAt: number, units = 1): void {
    this.#firstAskedAt = Math.min(this.#firstAskedAt, askedAt)
    this.#lastAnsweredAt = Math.max(this.#lastAnsweredAt, answeredAt)
    if (result === 'failed') {
      this.failed++
      return
    }
    this.#total[result] += units
    this.#recent.push({ at: answeredAt, result, units })
  }

  /** The units of all answers so far. */
  get total(): Count {
    return this.#total
  }

  /** The units of the answers of the last second before `now`, in milliseconds. Older ones are forgotten, so `now` must not go back. */
  lastSecond(now: number): Count {
    this.#recent = this.#recent.filter(({ at }) => at > now - 1000)
    const count = { allowed: 0, denied: 0 }
    for (const { result, units } of this.#recent) count[result] += units
    return count
  }

  /** Milliseconds from the first call to the last answer: every call that was allowed was allowed in between. */
  get spanMs(): number {
    return Math.max(0, this.#lastAnsweredAt - this.#firstAskedAt)
  }
}

/** The counts added up. */
export function sum(counts: readonly Count[]): Count {
  return {
    allowed: counts.reduce((total, { allowed }) => total + allowed, 0),
    denied: counts.reduce((total, { denied }) => total + denied, 0),
  }
}
