/**
 * The answer to `acquire`. A denial is a value: check `allowed` before you go on. Release a permit with `release()`, or
 * let `using` or `await using` do it.
 */
export class Permit {
  /** Whether the permit is held. */
  readonly allowed: boolean
  /** How long the call waited, in whole milliseconds, rounded up. */
  readonly waitMs: number
  #release: (() => void | Promise<void>) | undefined

  /** Made by semaphores. Without `release` the call is denied. */
  constructor(waitMs: number, release: (() => void | Promise<void>) | undefined) {
    this.allowed = release !== undefined
    this.waitMs = waitMs
    this.#release = release
  }

  /**
   * Releases the permit; later calls do nothing. Never rejects: while the store cannot be reached, the release is
   * repeated until the permit's lease ends, which frees it too.
   */
  async release(): Promise<void> {
    const release = this.#release
    this.#release = undefined
    await release?.()
  }

  [Symbol.dispose](): void {
    void this.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
