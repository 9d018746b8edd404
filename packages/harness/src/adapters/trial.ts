import type { Adapter, Feature } from './adapter.js'
import { itWith } from './it-with.js'

/** One thing that an adapter stands under any number of requests; the kit sends few, the fault matrix many. */
export interface Trial {
  readonly name: string
  /** The features without which it cannot be tried. */
  readonly needs: readonly Feature[]
  /** Sends `count` requests, an even number, and resolves to what went wrong. */
  run(count: number): Promise<readonly string[]>
}

/** Why a trial cannot be tried on an adapter; undefined where it can. */
export function lackOf(
  { lacks }: Pick<Adapter<never, never>, 'lacks'>,
  { needs }: Trial,
): Feature | undefined {
  return needs.find((feature) => lacks?.[feature])
}

/** Declares each trial as a test, which fails with what the trial finds wrong. */
export function trialCases(
  adapter: Pick<Adapter<never, never>, 'lacks'>,
  about: string,
  trials: readonly Trial[],
  count: number,
): void {
  describe(about, () => {
    for (const trial of trials)
      itWith(adapter, lackOf(adapter, trial))(
        trial.name,
        async () => expect(await trial.run(count)).toEqual([]),
        30_000,
      )
  })
}
