import { readFileSync } from 'node:fs'
import type { Member } from './member.js'
import { type Fault, type FaultName, movedBy } from './plan.js'

/** The table of failures in docs/outages.md: the reasons of degraded decisions, by what happened. */
const ROWS = new Map(
  readFileSync('docs/outages.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(
      ([, what, reasons]) =>
        [what!, [...reasons!.matchAll(/`(\w+)`/g)].map(([, reason]) => reason!)] as const,
    ),
)

/** The rows of that table which a fault is: how they begin. Without one it degrades no decision. */
const ROWS_OF: { readonly [fault in FaultName]?: readonly string[] } = {
  'server stopped': ['a stall', 'Redis is down'],
  'server restarted': ['it restarts without its data'],
  'server fails over': ['failover to a replica', 'it restarts without its data'],
  'server out of memory': ['`maxmemory` reached'],
  'server read only': ['a master that refuses writes'],
  'node dies': ['a master of a Cluster dies'],
  'slot moves': ['a slot of a Cluster moves'],
  'server busy': ["another user's script or function"],
  'process stopped': ['a stall', 'Redis is down'],
  'process busy': ['a stall', 'Redis is down'],
  'connection lost': ['Redis is down'],
  'half-open to': ['a stall', 'Redis is down'],
  'half-open from': ['a stall', 'Redis is down'],
  unreachable: ['Redis is down'],
  'slow network': ['Redis is slower', 'Redis is down'],
}

/** Faults that concern one process. */
const OF_PLACE = new Set<FaultName>([
  'process stopped',
  'process busy',
  'connection lost',
  'half-open to',
  'half-open from',
])
/** The reasons that the rows of a fault name. Throws where a row is not in the table. */
export const REASONS = new Map(
  Object.entries(ROWS_OF).map(([fault, beginnings]) => {
    const reasons = beginnings.flatMap((beginning) => {
      const row = [...ROWS].find(([what]) => what.startsWith(beginning))
      if (!row) throw new Error(`docs/outages.md has no row for ${fault}: ${beginning}`)
      return row[1]
    })
    return [fault, reasons] as const
  }),
)

/** A process that is busy for less than the silence after which connections are closed loses none. */
export const BUSY_US = 900_000

/** Whether calls of a process may be degraded by a fault. */
export function disturbs({ fault, place, lasts }: Fault, { name }: Member): boolean {
  if (!ROWS_OF[fault] || (fault === 'process busy' && lasts < BUSY_US)) return false
  return !OF_PLACE.has(fault) || name.startsWith(`p${place}.`)
}

/** By how much a replica lags, in microseconds. */
export const LAG_US = 30_000

/** Microseconds until a fault is over. That of a clock is at once. */
export function lasting(fault: Fault): number {
  return movedBy(fault) === 0 ? fault.lasts + LAG_US : 0
}

/** When connections come about again: a server that reads a snapshot takes them, and refuses calls. */
export function reachableAt({ fault, at, lasts, choice }: Fault): number {
  return at + (fault === 'server restarted' && !choice ? lasts / 2 : lasts)
}

/** Whether the server loses what it has stored. */
export function losesData({ fault }: Fault): boolean {
  return fault === 'server restarted' || fault === 'server fails over' || fault === 'state broken'
}

/** The faults of a history. */
interface Faulty {
  readonly faults: readonly Fault[]
}

export function isClockMoved({ faults }: Faulty): boolean {
  return faults.some((fault) => movedBy(fault) !== 0)
}

export function isClockSetBack({ faults }: Faulty): boolean {
  return faults.some((fault) => movedBy(fault) < 0)
}

/** Whether a fault of a kind was at work between two instants. */
export function isUnder(history: Faulty, from: number, to: number, is: (fault: Fault) => boolean): boolean {
  return under(history, from, to).some(is)
}

/** The faults that acted between two instants. */
export function under({ faults }: Faulty, from: number, to: number): readonly Fault[] {
  return faults.filter((fault) => fault.at <= to && fault.at + lasting(fault) >= from)
}

/** Whether calls of a process may have been degraded between two instants. */
export function isDisturbed(history: Faulty, member: Member, from: number, to: number): boolean {
  return isUnder(history, from, to, (fault) => disturbs(fault, member))
}
