import { resolve } from 'node:path'
import { startMember } from '../fleet.js'
import type { ResetJob, ResetResult } from '../workers/resetting.js'
import type { Outcome, Row } from '../row.js'

/**
 * Callers that reset their connections at once get no more than their limit, and nothing where they are denied or banned.
 * Honest requests that have no address either are all served.
 */
export const row: Row = { number: 37, fault: 'resets', tested: true, run }

/** The applications of the adapters' kit, in two processes. */
const FILES = [
  ['express/test/kit-app.ts', 'hono/test/kit-app.ts', 'http/test/kit-app.ts'],
  ['koa/test/kit-app.ts', 'fastify/test/kit-app.ts', 'nest/test/kit-platforms.ts'],
]

/**
 * Sends requests whose connections are reset, and honest ones, to the applications of each adapter. Passes if the kit finds
 * nothing wrong with the answers and charges. `share` is the part of the full load, 0 to 1.
 */
async function run(share: number): Promise<Outcome> {
  const count = 2 * Math.round(500 * share)
  const results = await Promise.all(FILES.map((files) => resultOf({ files, count })))
  const [adapters, wrong] = [
    results.flatMap((result) => result.adapters),
    results.flatMap((result) => result.wrong),
  ]
  const sum = (of: 'resets' | 'honest') => results.reduce((total, result) => total + result[of], 0)
  const first = wrong.length === 0 ? '' : `; ${wrong.length} wrong: ${wrong[0]}`
  return {
    pass: adapters.length === 9 && wrong.length === 0,
    figure:
      `${adapters.join(', ')}: ${sum('resets')} times ${count} resets, ` +
      `${sum('honest')} times ${count} honest requests${first}`,
  }
}

/** Runs one job in a process of its own, and returns its result. */
async function resultOf(job: ResetJob): Promise<ResetResult> {
  const member = await startMember('packages/faults/src/workers/resetting.ts', resolve('.'))
  try {
    await member.prepare(job)
    return (await member.go()) as ResetResult
  } finally {
    await member.end()
  }
}
