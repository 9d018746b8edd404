import type { Answer } from '../../store.js'
import { passed } from './wire.js'

/**
 * The reply to a call of a script with several keys, read key by key: an instant, then remaining and resetAt for each plain
 * call and policy, and a mark for each key that has a reply of its own.
 */
export class PackedReply {
  readonly #numbers: DataView
  readonly #now: number
  #at = DOUBLE

  constructor({ buffer, byteOffset, byteLength }: Uint8Array) {
    this.#numbers = new DataView(buffer, byteOffset, byteLength)
    this.#now = this.#numbers.getFloat64(0, true)
  }

  /** Whether the calls of the next key were plain. Otherwise passes over the mark. */
  isPlain(): boolean {
    if (this.#numbers.getFloat64(this.#at, true) >= 0) return true
    this.#at += DOUBLE
    return false
  }

  /** The answer to the next plain call. */
  next(policies: number): Answer {
    const now = this.#now
    let remaining = this.#number()
    let resetAt = this.#number()
    if (policies === 1) return passed(now, 0, remaining, resetAt, undefined)
    const parts = [now, remaining, resetAt]
    let binding = 0
    for (let i = 1; i < policies; i++) {
      const [left, reset] = [this.#number(), this.#number()]
      parts.push(now, left, reset)
      if (left < remaining) {
        binding = i
        remaining = left
      }
      if (reset > resetAt) resetAt = reset
    }
    return passed(now, binding, remaining, resetAt, parts)
  }

  #number(): number {
    const number = this.#numbers.getFloat64(this.#at, true)
    this.#at += DOUBLE
    return number
  }
}

const DOUBLE = 8
