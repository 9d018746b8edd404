/**
 * The answer to `acquire`. Give the place back with `release()`, or let `using` or `await using` do it.
 * A denial is a value: look at `allowed` before you go on.
 */
export class Permit {
  /** Whether there is a place. */
  readonly allowed: boolean
  /** How long it waited, in whole milliseconds, rounded up. */
  readonly waitMs: number
  #giveBack: (() => void | Promise<void>) | undefined

  /** For semaphores. `giveBack` is undefined where there is nothing to give back. */
  constructor(waitMs: number, giveBack: (() => void | Promise<void>) | undefined) {
    this.allowed = giveBack !== undefined
    this.waitMs = waitMs
    this.#giveBack = giveBack
  }

  /**
   * Frees the place, the first time. Never rejects: where the store cannot be reached, the place is back soon after it
   * can be again, and when its lease ends at the latest.
   */
  async release(): Promise<void> {
    const giveBack = this.#giveBack
    this.#giveBack = undefined
    await giveBack?.()
  }

  [Symbol.dispose](): void {
    void this.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
