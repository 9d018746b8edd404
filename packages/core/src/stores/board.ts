/** Holds a text of each author until it expires. An author is a process, or a part of one. */
export interface Board {
  /**
   * Replaces the author's text. It expires exactly `lifeMs` milliseconds later on the store's clock; whole, 1 to
   * 3,600,000.
   */
  post(author: string, text: string, lifeMs: number): void | Promise<void>
  /** The texts that have not expired, in no order. */
  read(): readonly string[] | Promise<readonly string[]>
}
