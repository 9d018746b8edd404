import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { PROTOCOL } from '../../../machine/src/protocol.js'
import { pause } from '@sluice/harness/redis'
import { type Member, startMember } from '../fleet.js'
import { LIMIT, type MachineJob, type MachineResult } from '../workers/machine-jobs.js'
import { together } from '../outage.js'
import type { Outcome, Row } from '../row.js'

/** The processes of one machine share a store without Redis, whichever of them serves, stops or dies. */
export const row: Row = { number: 35, fault: 'one machine', timed: true, run: shareMachine }

const BAR_MS = 500
const ENTRY = 'packages/faults/src/workers/machine-member.ts'

/**
 * Lets processes of one machine share limits through machineStore, race, end and be killed. Passes if the limit is exact, and
 * another process takes over in time. `share` is the part of the full load, 0 to 1.
 */
async function shareMachine(share: number): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const members = await Promise.all(Array.from({ length: 6 }, () => startMember(ENTRY, resolve('.'))))
  try {
    return together([
      await race(members, folder, Math.max(1, Math.round(10 * share))),
      await bindAtOnce(members.slice(0, 2), folder, Math.max(40, Math.round(1000 * share))),
      await stop(members.slice(0, 3), folder),
      await kill(members.slice(3), folder),
    ])
  } finally {
    await Promise.all(members.map((member) => member.end()))
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Gives all processes one job and lets them begin at the same moment, when all are ready. Returns their results. */
async function all(members: readonly Member[], job: MachineJob): Promise<MachineResult[]> {
  await Promise.all(members.map((member) => member.prepare(job)))
  return Promise.all(members.map(async (member) => (await member.go()) as MachineResult))
}

/** Lets all processes open the store and call one key, several times. Passes if each time exactly the limit was admitted. */
async function race(members: readonly Member[], folder: string, runs: number): Promise<Outcome> {
  let exact = 0
  for (let run = 0; run < runs; run++) {
    const calls = Math.ceil((1.25 * LIMIT) / members.length)
    const results = await all(members, { kind: 'race', folder, name: `race-${run}`, calls })
    if (admittedBy(results) === LIMIT && results.every(({ degradedAt }) => degradedAt.length === 0)) exact++
  }
  const figure = `${members.length} processes race: exactly ${LIMIT} admitted in ${exact} of ${runs}`
  return { pass: exact === runs, figure }
}

/** Behind every second name lies what a process that was killed leaves: a socket that refuses, as a plain file does. */
async function bindAtOnce(members: readonly Member[], folder: string, binds: number): Promise<Outcome> {
  const left: string[] = []
  for (let done = 0; done < binds; done += ROUND) {
    const names = Array.from({ length: Math.min(ROUND, binds - done) }, (_, i) => `bind-${done + i}`)
    for (const [i, name] of names.entries()) {
      if (i % 2 === 1) continue
      mkdirSync(join(folder, `${PROTOCOL}-${name}`), { mode: 0o700 })
      writeFileSync(join(folder, `${PROTOCOL}-${name}`, '7'), '')
    }
    const first = Date.now() + 200
    const at = names.map((_, i) => first + BIND_MS * i)
    const results = await all(members, { kind: 'binds', folder, names, at })
    for (const [i] of names.entries()) {
      left.push(
        results
          .map(({ remaining }) => LIMIT - remaining[i]!)
          .sort((a, b) => a - b)
          .join(),
      )
    }
  }
  const wrong = left.filter((each) => each !== '1,2')
  const figure = `two bind at once: one serves in ${binds - wrong.length} of ${binds}`
  return { pass: wrong.length === 0, figure: wrong[0] ? `${figure} (${wrong[0]} charged)` : figure }
}

/** Stores that are open at once. */
const ROUND = 50
const BIND_MS = 10

/** The process that serves stops for two seconds, and goes on with the state that it had. */
async function stop(members: readonly Member[], folder: string): Promise<Outcome> {
  const { server, admitted } = await exhausted(members, folder, 'stopped')
  server.signal('SIGSTOP')
  await pause(2000)
  const ended = Date.now()
  server.signal('SIGCONT')
  await pause(1000)
  const results = await all(members, { kind: 'end' })
  const recovery = lastDegraded(results) - ended
  const pass = recovery <= BAR_MS && admitted === LIMIT && admittedBy(results) === LIMIT
  const figure =
    `stopped 2 s: decided again ${recovery} ms after (bar ${BAR_MS}), ${admitted} admitted before, ` +
    `${admittedBy(results) - admitted} more after`
  return { pass, figure }
}

/** The process that serves is killed, and another takes its place: the state begins anew once. */
async function kill(members: readonly Member[], folder: string): Promise<Outcome> {
  const { server, others, served, admitted } = await exhausted(members, folder, 'killed')
  const killed = Date.now()
  await server.end()
  await pause(2000)
  const results = await all(others, { kind: 'end' })
  const recovery = lastDegraded(results) - killed
  const total = served + admittedBy(results)
  const sockets = readdirSync(join(folder, `${PROTOCOL}-killed`)).join()
  return {
    pass: recovery <= BAR_MS && admitted === LIMIT && total === 2 * LIMIT && sockets === '2',
    figure:
      `killed: decided again ${recovery} ms after (bar ${BAR_MS}), ${admitted} admitted before, ` +
      `${total - admitted} more after, socket ${sockets} is left`,
  }
}

/** Processes under load, when the limit is used up; `served` of it by the process that serves. */
async function exhausted(members: readonly Member[], folder: string, name: string) {
  const begun = await all(members, { kind: 'load', folder, name })
  await pause(2000)
  const results = await all(members, { kind: 'count' })
  const i = begun.findIndex(({ serves }) => serves)
  const others = members.filter((member) => member !== members[i])
  return { server: members[i]!, others, served: results[i]!.admitted, admitted: admittedBy(results) }
}

/** How many calls all processes together had admitted. */
function admittedBy(results: readonly MachineResult[]): number {
  return results.reduce((sum, { admitted }) => sum + admitted, 0)
}

/** The instant of the last call that the store did not decide; 0 if there was none. */
function lastDegraded(results: readonly MachineResult[]): number {
  return Math.max(0, ...results.flatMap(({ degradedAt }) => degradedAt))
}
