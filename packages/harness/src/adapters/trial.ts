/** One thing that an adapter stands under any number of requests; the kit sends few, the fault matrix many. */
export interface Trial {
  readonly name: string
  /** Sends `count` requests, an even number, and resolves to what went wrong. */
  run(count: number): Promise<readonly string[]>
}

/** Declares each trial as a test, which fails with what the trial finds wrong. */
export function trialCases(
  about: string,
  trials: readonly Trial[],
  count: number,
  declare: Pick<jest.It, 'each'> = it,
): void {
  describe(about, () => {
    declare.each(trials.map(({ name, run }) => [name, run] as const))(
      '%s',
      async (_, run) => expect(await run(count)).toEqual([]),
      30_000,
    )
  })
}
