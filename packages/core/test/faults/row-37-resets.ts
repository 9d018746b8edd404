import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Adapter, resetTrials, type Trial, unaddressedTrials } from '@sluice/harness/adapters'
import type { Outcome, Row } from './row.js'

/**
 * Callers that reset their connections at once get no more than their limit, and nothing where they are denied or banned.
 * Honest requests that have no address either are all served.
 */
export const row: Row = { number: 37, fault: 'resets', tested: true, run }

/** The applications of the adapters' kit. */
const APPS = ['express/test/kit-app', 'koa/test/kit-app', 'fastify/test/kit-app', 'hono/test/kit-app']
const APPS_OF_NEST = 'nest/test/kit-platforms'

async function run(share: number): Promise<Outcome> {
  const count = 2 * Math.round(500 * share)
  const adapters = (await Promise.all([...APPS, APPS_OF_NEST].map(adaptersIn))).flat()
  const wrong: string[] = []
  const resets = await attempt(resetTrials)
  const honest = await attempt(unaddressedTrials)
  const first = wrong.length === 0 ? '' : `; ${wrong.length} wrong: ${wrong[0]}`
  return {
    pass: adapters.length === 7 && wrong.length === 0,
    figure:
      `${adapters.map(({ name }) => name).join(', ')}: ${resets} times ${count} resets, ` +
      `${honest} times ${count} honest requests${first}`,
  }

  async function attempt(trialsOf: (adapter: Adapter<never, never>) => readonly Trial[]): Promise<number> {
    let trials = 0
    for (const adapter of adapters) {
      for (const { name, run } of trialsOf(adapter)) {
        const faults = await run(count)
        wrong.push(...faults.map((fault) => `${adapter.name}: ${name}: ${fault}`))
        trials++
      }
    }
    return trials
  }
}

async function adaptersIn(file: string): Promise<Adapter<never, never>[]> {
  const exported: object = await import(pathToFileURL(resolve(`packages/${file}.ts`)).href)
  return Object.values(exported).flat()
}
