import type { Policy } from '../../algorithms/contract/policy.js'
import { type Ring, State } from '../../algorithms/contract/state.js'
import { ENTRY, HEAD } from '../memory/key-reservations.js'

/** The numbers that every state begins with, in their order behind the format. Instants are microseconds. */
const HEADER = [
  /** A random number of state that began anew, by which a booking notices that its state was lost. */
  'epoch',
  /** A random number of the latest write that charged units or gave units back. */
  'version',
  /** The instant of the latest write. */
  'written',
  /** The instant after which the state may be dropped: the latest that any write has named. */
  'expiresAt',
  /** The last booked instant; 0 without future bookings. */
  'last',
  'blockedUntil',
  'heldUntil',
  /** The refusals that a penalty counts, and the instant at which it is forgotten. */
  'refusals',
  'forgottenAt',
] as const

type Header = Readonly<Record<(typeof HEADER)[number], number>>

/** The state of one key under one list of policies, as `keyspaceOver` keeps it. */
export interface KeptState extends Header {
  /** The instant at which the state began, then the cells of the policies. */
  readonly cells: Float64Array
  /** For each policy with a ring its instants, oldest first. */
  readonly rings: readonly ArrayLike<number>[]
  /** In a keyspace that reserves: the numbers of `KeyReservations`, if the key has some. */
  readonly reserved?: readonly number[]
}

/** How many numbers a list of policies keeps for a key. */
export interface StateLayout {
  readonly cells: number
  readonly rings: number
  /** Whether reservations may lie behind the rings. */
  readonly reserves: boolean
}

/** The first number of every state. The numbers behind it have 8 bytes each, the lowest first on every machine. */
const FORMAT = 2

/**
 * Returns the state of a key as bytes to be kept: a list of numbers, 8 bytes each. They are the format, the header (HEADER has
 * the names), the cells, then each ring, a list of instants, behind its length, and what is reserved.
 */
export function bytesOf(state: KeptState): Uint8Array {
  const rings = state.rings.flatMap((ring) => [ring.length, ...Array.from(ring)])
  const numbers = [
    FORMAT,
    ...HEADER.map((field) => state[field]),
    ...state.cells,
    ...rings,
    ...(state.reserved ?? []),
  ]
  const view = new DataView(new ArrayBuffer(8 * numbers.length))
  for (let i = 0; i < numbers.length; i++) view.setFloat64(8 * i, numbers[i]!, true)
  return new Uint8Array(view.buffer)
}

/**
 * Reads the state of a key back from the bytes that `bytesOf` made. `layout` says how many cells and rings (lists of instants, each
 * behind its length) they must have, and whether a list of reservations may follow: 4 numbers, and ENTRY more for each. Undefined
 * if they are not of this format or layout, for example because they were cut off or another program wrote them.
 */
export function stateOf(bytes: Uint8Array, layout: StateLayout): KeptState | undefined {
  const numbers = numbersIn(bytes)
  const cellsEnd = 1 + HEADER.length + layout.cells
  if (!numbers || numbers[0] !== FORMAT || numbers.length < cellsEnd + layout.rings) return undefined
  const rings: Float64Array[] = []
  let position = cellsEnd
  for (let i = 0; i < layout.rings; i++) {
    const end = position + 1 + (numbers[position] ?? NaN)
    if (!(Number.isInteger(end) && end > position && end <= numbers.length)) return undefined
    rings.push(numbers.subarray(position + 1, end))
    position = end
  }
  const reserved = [...numbers.subarray(position)]
  if (reserved.length > 0 && !(layout.reserves && reserved.length % ENTRY === HEAD)) return undefined
  const fields = {} as Record<keyof Header, number>
  for (const [i, field] of HEADER.entries()) fields[field] = numbers[1 + i]!
  const cells = numbers.subarray(1 + HEADER.length, cellsEnd)
  return Object.assign(fields, { cells, rings, ...(reserved.length > 0 && { reserved }) })
}

/**
 * Reads bytes as numbers of 8 bytes each. Undefined if one is negative or not whole, as no state holds such a number, or if bytes
 * are left over.
 */
function numbersIn(bytes: Uint8Array): Float64Array | undefined {
  if (bytes.byteLength % 8 !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const numbers = new Float64Array(bytes.byteLength / 8)
  for (let i = 0; i < numbers.length; i++) {
    const number = view.getFloat64(8 * i, true)
    if (!(Number.isInteger(number) && number >= 0)) return undefined
    numbers[i] = number
  }
  return numbers
}

/** The instants of a ring, oldest first. */
export function instantsOf(ring: Ring): readonly number[] {
  return Array.from({ length: ring.size }, (_, i) => ring.at(ring.size - 1 - i))
}

/**
 * Whether a call can have written this state under policies of these shapes: the script in Redis asks the same of its own. It
 * rules out instants that are too far ahead or not in order, numbers too large to be exact, and cells that their algorithm finds
 * impossible. Any other state might refuse its key for ever, or admit it without bound. `base` is where each policy's own cells
 * begin.
 */
export function isSound(state: KeptState, policies: readonly Policy[]): boolean {
  const { written, expiresAt, last, blockedUntil, heldUntil, cells, rings } = state
  const latest = Math.max(written, last)
  let base = BORN + 1
  return (
    Math.max(last, blockedUntil, heldUntil) <= written + FAR &&
    cells.every((cell) => cell <= EXACT) &&
    cells[BORN]! <= written &&
    rings.every((instants) => isInOrder(instants, latest)) &&
    policies.every((policy) => {
      const own = new State(cells, base)
      base += policy.algorithm.cells(policy)
      return policy.algorithm.isValid?.(own, policy, latest, expiresAt) ?? true
    })
  )
}

/**
 * Returns what is left of a state after the clock was set back, to `time`, by more than time stands still: the cells of calendars,
 * whose windows have a stored end, and what restricts the key. The instants at which the state and its list of reservations began
 * become `time` if they are later, so that what is charged from now on can be given back. If there are other policies too, what
 * they have is cleared, and bookings that were made before are lost (`epoch` is 0).
 */
export function keptByCalendars(state: KeptState, policies: readonly Policy[], time: number): KeptState {
  const cells = state.cells.slice()
  cells[BORN] = Math.min(cells[BORN]!, time)
  const reserved = state.reserved && [Math.min(state.reserved[0]!, time), ...state.reserved.slice(1)]
  const kept = { ...state, cells, ...(reserved && { reserved }) }
  if (policies.every(({ calendar }) => calendar)) return kept
  let base = BORN + 1
  for (const policy of policies) {
    const end = base + policy.algorithm.cells(policy)
    if (!policy.calendar) cells.fill(0, base, end)
    base = end
  }
  return { ...kept, epoch: 0, written: time, last: 0, rings: state.rings.map(() => []) }
}

/** Whether instants are in ascending order and none is later than `latest`, all in microseconds. */
function isInOrder(instants: ArrayLike<number>, latest: number): boolean {
  for (let i = 1; i < instants.length; i++) if (instants[i]! < instants[i - 1]!) return false
  return instants.length === 0 || instants[instants.length - 1]! <= latest
}

/** The cell before those of the policies. */
const BORN = 0
/** Microseconds from a write to the last instant that it restricts a key until: more than any block, hold or wait. */
const FAR = 2 ** 50
const EXACT = 2 ** 53
