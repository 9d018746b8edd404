/** For an adaptive limit, how the other side ended a call: it served the call, refused it because of its limit, or neither. */
export type CallOutcome = 'served' | 'refused' | 'failed'

type ReleasePermit = (outcome: CallOutcome, tookMs?: number) => void | Promise<void>

/**
 * The answer to `acquire`. A denial is a value: check `allowed` before you go on. Release a permit with `release()`, or
 * let `using` or `await using` do it (Node 24, or compiled by TypeScript 5.2 or esbuild).
 */
export class Permit {
  /** Whether the permit is held. */
  readonly allowed: boolean
  /** How long the call waited, in whole milliseconds, rounded up. */
  readonly waitMs: number
  #release: ReleasePermit | undefined

  /** Makes the answer to a call that waited `waitMs` milliseconds: a permit, which `release` gives back, or a denial without it. */
  constructor(waitMs: number, release: ReleasePermit | undefined) {
    this.allowed = release !== undefined
    this.waitMs = waitMs
    this.#release = release
  }

  /**
   * Releases the permit; later calls do nothing. Never rejects: while the store cannot be reached, the release is
   * repeated until the permit's lease ends, which frees it too. An adaptive limit takes account of the
   * outcome, and of `tookMs`, the time that the other side took: by default all the time for which the permit was held.
   */
  async release(outcome: CallOutcome = 'served', tookMs?: number): Promise<void> {
    const release = this.#release
    this.#release = undefined
    await release?.(outcome, tookMs)
  }

  /** Releases the permit at the end of a `using` block, without waiting for the store. */
  [Symbol.dispose](): void {
    this.release().catch(() => {})
  }

  /** Releases the permit at the end of an `await using` block, and waits until the store has answered. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
