/** One subject of `npm run demo`. */
export interface Demo {
  readonly usage: string
  /**
   * Runs until it is over or `stop` aborts. Resolves to whether every promise held.
   * @throws {UsageError} for options that are not understood.
   * @throws {CannotRun} where something it needs is missing.
   */
  run(args: string[], stop: AbortSignal): Promise<boolean>
}

/** Its message is meant for the person at the terminal. */
export class CannotRun extends Error {}
