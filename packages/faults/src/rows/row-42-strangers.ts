import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { type Member, startMember } from '../fleet.js'
import type { Outcome, Row } from '../row.js'
import type { UserJob, UserResult } from '../workers/machine-user.js'

const isRoot = process.getuid?.() === 0

/**
 * Another user makes and removes folders where the processes of a machine meet by default, while they start: each starts,
 * one serves, and exactly the limit is admitted.
 */
export const row: Row = { number: 42, fault: 'strangers', warnings: isRoot ? ['FOLDER_TAKEN'] : [], run }

const [USER, STRANGER] = [41_001, 41_002]
const LIMIT = 10
const ENTRY = 'packages/faults/src/workers/machine-user.ts'
const [FIRST, SECOND] = [`sluice-${USER}`, `sluice-${USER}-1`]

/** The stranger's acts before each process but the first. Making a folder is what it begins with. */
const ORDERS = [
  [rmdir(FIRST), mkdir(SECOND), mkdir(FIRST)],
  [mkdir(SECOND), rmdir(FIRST), rmdir(SECOND)],
  [rmdir(FIRST), mkdir(FIRST), rmdir(SECOND)],
]

/**
 * Lets another user of the machine put folders where processes would meet. Passes if they find each other all the same, and
 * the limit is exact. `share` is the part of the full load, 0 to 1.
 */
async function run(share: number): Promise<Outcome> {
  if (!isRoot) return { pass: true, figure: 'left out: needs root, to be two other users' }
  const rounds = Math.max(4, Math.round(150 * share))
  const members = await Promise.all(Array.from({ length: 4 }, () => startMember(ENTRY, resolve('.'))))
  try {
    const between = await repeated(rounds, members, inTurn)
    const during = await repeated(rounds, members, atOnce)
    const pairs = await repeated(rounds, members, inPairs)
    return {
      pass: [between, during, pairs].every((exact) => exact === rounds),
      figure:
        `one server, and exactly ${LIMIT} admitted: in ${between} of ${rounds} with a stranger's folders between the starts of 4 ` +
        `processes, in ${during} during them, in ${pairs} where two claim different folders`,
    }
  } finally {
    await Promise.all(members.map((member) => member.end()))
  }
}

type Round = (members: readonly Member[], temporary: string, i: number) => Promise<UserResult[]>

/**
 * Repeats a round in a folder of its own each time. Returns in how many one process served, and exactly the limit was
 * admitted.
 */
async function repeated(rounds: number, members: readonly Member[], round: Round): Promise<number> {
  let exact = 0
  for (let i = 0; i < rounds; i++) {
    const temporary = mkdtempSync(join(tmpdir(), 'sluice-strangers-'))
    chmodSync(temporary, 0o1777)
    try {
      const job: UserJob = { uid: USER, temporary, isPair: round === inPairs, limit: LIMIT }
      await Promise.all(members.map((member) => member.prepare(job)))
      const results = await round(members, temporary, i)
      const admitted = results.reduce((sum, each) => sum + each.admitted, 0)
      if (admitted === LIMIT && results.reduce((sum, { serving }) => sum + serving, 0) === 1) exact++
    } finally {
      rmSync(temporary, { recursive: true })
    }
  }
  return exact
}

/** Starts the processes one after the other, with an act of the stranger before each. Returns their results. */
async function inTurn(members: readonly Member[], temporary: string, i: number): Promise<UserResult[]> {
  const results: UserResult[] = []
  const acts = [mkdir(FIRST), ...ORDERS[i % ORDERS.length]!]
  for (const [j, member] of members.entries()) {
    acts[j]!(temporary)
    results.push((await member.go()) as UserResult)
  }
  return results
}

/** One process is enough: of its two stores, one claims the second folder while the other finds the first one free. */
async function inPairs([member]: readonly Member[]): Promise<UserResult[]> {
  return [(await member!.go()) as UserResult]
}

/** Starts the processes at once, while the stranger changes folders as fast as possible. Returns their results. */
async function atOnce(members: readonly Member[], temporary: string): Promise<UserResult[]> {
  mkdir(FIRST)(temporary)
  const starts = Promise.all(members.map(async (member) => (await member.go()) as UserResult))
  let isOver = false
  const over = (): void => void (isOver = true)
  starts.then(over, over)
  for (let i = 0; !isOver; i = (i + 1) % FLIPS.length) {
    FLIPS[i]!(temporary)
    await turn()
  }
  return starts
}

const FLIPS = [rmdir(FIRST), mkdir(SECOND), mkdir(FIRST), rmdir(SECOND)]

type Act = (temporary: string) => void

/**
 * The act of making a folder that belongs to the other user. It is done as root, which is faster than a process of that
 * user.
 */
function mkdir(name: string): Act {
  return (temporary) => {
    const path = join(temporary, name)
    if (existsSync(path)) return
    try {
      mkdirSync(path)
      chownSync(path, STRANGER, STRANGER)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/** The act of removing a folder, if it is the other user's: that user could remove no other. */
function rmdir(name: string): Act {
  return (temporary) => {
    const path = join(temporary, name)
    if (lstatSync(path, { throwIfNoEntry: false })?.uid === STRANGER) rmdirSync(path)
  }
}
