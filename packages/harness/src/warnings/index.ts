/** What a test expects of the warnings that Sluice writes to the process while it runs. */
export interface Expectation {
  /** Codes of warnings of which there must be one each, or several. */
  readonly required: readonly string[]
  /** Codes of warnings that may come, as it depends on when something happens. */
  readonly perhaps: readonly string[]
  /** The warnings of any code that were written since, in their order. */
  readonly written: { readonly code: string; readonly message: string }[]
}

/**
 * Expects warnings of the process with these codes in the test that runs, or, outside of one, in the next. By the end of the test
 * at least one of each of `codes` must have been written, and none of another code; those of `perhaps` may have been. Returns the
 * warnings that are written from now on, for a test of how many there are, and of their texts.
 */
export function expectWarnings(
  codes: readonly string[],
  { perhaps = [] }: { readonly perhaps?: readonly string[] } = {},
): Expectation['written'] {
  const { 'sluice.expectations': expectations } = globalThis as {
    readonly 'sluice.expectations'?: Expectation[]
  }
  if (!expectations)
    throw new Error('expectWarnings is for tests in an environment of packages/harness/src/environments')
  const expectation: Expectation = { required: codes, perhaps, written: [] }
  expectations.push(expectation)
  return expectation.written
}
