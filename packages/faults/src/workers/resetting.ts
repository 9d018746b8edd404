import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Adapter, lackOf, resetTrials, type Trial, unaddressedTrials } from '@sluice/harness/adapters'
import { serve } from './fleet-member.js'

/** A process of row 37: serves applications of the adapters' kit, and sends their requests. */

export interface ResetJob {
  /** Files of the packages that export applications. */
  readonly files: readonly string[]
  /** How many requests each trial sends. */
  readonly count: number
}

export interface ResetResult {
  readonly adapters: readonly string[]
  /** How often connections were reset, and how often honest requests were sent, `count` times each. */
  readonly resets: number
  readonly honest: number
  readonly wrong: readonly string[]
}

serve<ResetJob, ResetResult>(async ({ files, count }) => {
  const adapters = (await Promise.all(files.map(adaptersIn))).flat()
  return async () => {
    const wrong: string[] = []
    const resets = await attempt(resetTrials, wrong)
    const honest = await attempt(unaddressedTrials, wrong)
    return { adapters: adapters.map(({ name }) => name), resets, honest, wrong }
  }

  /** Runs trials of every adapter. Adds what was wrong to `wrong`, and returns how many trials there were. */
  async function attempt(
    trialsOf: (adapter: Adapter<never, never>) => readonly Trial[],
    wrong: string[],
  ): Promise<number> {
    let trials = 0
    for (const adapter of adapters) {
      for (const { name, run } of trialsOf(adapter).filter((trial) => !lackOf(adapter, trial))) {
        wrong.push(...(await run(count)).map((fault) => `${adapter.name}: ${name}: ${fault}`))
        trials++
      }
    }
    return trials
  }
})

/** The adapters that a file of tests exports, one or a list. */
async function adaptersIn(file: string): Promise<Adapter<never, never>[]> {
  const exported: object = await import(pathToFileURL(resolve(`packages/${file}`)).href)
  return Object.values(exported).flat()
}
