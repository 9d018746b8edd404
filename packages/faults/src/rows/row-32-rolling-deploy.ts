import { startRedis } from '@sluice/harness/redis'
import { Builds, type Sources } from '../builds.js'
import { everyAlgorithm, isCalendar } from '../every-algorithm.js'
import { type Member, startMember } from '../fleet.js'
import type { RollingJob, RollingResult } from '../workers/rolling-member.js'
import type { Outcome, Row } from '../row.js'

/**
 * Processes of two versions take turns on one key. Where their state has the same format it is one limit; where it has
 * another, each keeps its own and none drops the other's.
 */
export const row: Row = { number: 32, fault: 'rolling deploy', run: roll }

/** The last commit whose keys did not carry the format of their state. */
const WITHOUT_FORMAT = '9b1e4ff97abc05ab5d04aedd1e638463e1a84db5'
/** Limits that are called for ten times as often as they admit. */
const TIMES = 10

/**
 * Lets a process of this build take turns with one of another on the same keys. Passes if exactly the limit passes under one
 * format of state, and at most twice that under two, where each keeps its own. `share` is the part of the full load, 0 to 1.
 */
async function roll(share: number): Promise<Outcome> {
  const limit = Math.max(20, Math.round(100 * share))
  const redis = await startRedis()
  const builds = new Builds()
  const present = await member(builds.present)
  const figures: string[] = []
  let pass = true
  try {
    // Without history, a second process of this build stands for the last one.
    const last = builds.lastOfThisFormat() ?? builds.present
    const before = builds.at(WITHOUT_FORMAT)
    const others = [builds.ofAnotherFormat(), ...(before ? [before] : [])]
    for (const [sources, most] of [
      [last, limit],
      ...others.map((each) => [each, 2 * limit] as const),
    ] as const) {
      const other = await member(sources)
      const { admitted, healed, wrong } = await takeTurns([present, other], limit, most)
      await other.end()
      pass &&= wrong === undefined
      figures.push(
        `${sources.what} ${admitted.join(' to ')} of ${TIMES * limit} calls, ${healed} times healed` +
          (wrong === undefined ? '' : ` (${wrong})`),
      )
    }
  } finally {
    await present.end()
    builds.remove()
    await redis.stop()
  }
  return { pass, figure: `limit ${limit}, every algorithm, this build in turn with ${figures.join('; ')}` }

  /**
   * Lets two processes call in turns under each algorithm. Returns how many calls passed, and what was wrong: more than `bound`, not exactly
   * it where both share state, or state that one of them could not read.
   */
  async function takeTurns(members: readonly Member[], most: number, bound: number) {
    const admitted: number[] = []
    let healed = 0
    let wrong: string | undefined
    const slots = ['gcra', { limit: most, window: '1d', slots: 16 }] as const
    // A process of an older build has no Temporal for windows of the calendar.
    const all = everyAlgorithm(most).filter(([, spec]) => !isCalendar(spec))
    for (const [title, policy] of [...all, ['gcra with slots', slots] as const]) {
      const key = `${title} ${++keys}`
      const job: RollingJob = { redis: { host: redis.host, port: redis.port }, policy, key }
      for (const each of members) await each.prepare(job)
      const last: RollingResult[] = []
      let passed = 0
      for (let call = 0; call < TIMES * most; call++) {
        const turn = call % members.length
        const result = (last[turn] = (await members[turn]!.go()) as RollingResult)
        if (result.allowed) passed++
      }
      healed += last.reduce((sum, result) => sum + result.healed, 0)
      admitted.push(passed)
      const exact = bound === most
      if (passed > bound || (exact && passed < bound) || healed > 0) {
        wrong ??= `${title}: ${passed} passed, ${exact ? 'exactly' : 'at most'} ${bound} may`
      }
    }
    return { admitted: [Math.min(...admitted), Math.max(...admitted)], healed, wrong }
  }
}

let keys = 0

/** Starts a process that runs the sources of one build. */
function member({ folder }: Sources): Promise<Member> {
  return startMember('packages/faults/src/workers/rolling-member.ts', folder)
}
