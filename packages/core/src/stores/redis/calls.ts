import { StoreError } from '../../values/errors.js'
import type { Caller } from '../store.js'
import type { Bytes } from './client.js'

/** What one caller asks a script about one key. */
export interface Call {
  readonly key: string
  /** What it takes of Redis's time: 1, or what its cost is where each unit is written. */
  readonly units: number
  readonly caller: Caller | undefined
  /** Those after it that ask the same. */
  alike: Call[] | undefined
  /** Whether `other` asks the same of its key: with the same argument, and if the keys are the same in one run. */
  isLike(other: Call): boolean
  /** The script's argument when this call is made `times` times in one run. */
  argument(times: number): Bytes
  /** Tells its caller, and those of the calls that are alike, what the script replied. */
  answer(reply: Buffer): void
  /** Tells its caller alone that nothing was decided. */
  fail(error: unknown): void
}

/** Calls in an order in which those that share an argument come last. Mostly all do, which saves packing and sending it. */
export function prepared(gathered: readonly Call[]): { calls: readonly Call[]; args: readonly Bytes[] } {
  if (gathered.length === 1) return { calls: gathered, args: [argumentOf(gathered[0]!)] }
  const common = gathered.find(({ alike }) => !alike)
  const own: Call[] = []
  const sharing: Call[] = []
  for (const call of gathered) {
    const shares = call === common || (common && !call.alike && call.isLike(common))
    ;(shares ? sharing : own).push(call)
  }
  const args = own.map(argumentOf)
  if (common) args.push(common.argument(1))
  return { calls: own.length === 0 ? sharing : [...own, ...sharing], args }
}

function argumentOf(call: Call): Bytes {
  return call.argument(1 + (call.alike?.length ?? 0))
}

export function settle(call: Call, reply: Buffer | Error): void {
  if (reply instanceof Error) return failAll(call, reply)
  try {
    call.answer(reply)
  } catch (error) {
    failAll(call, error)
  }
}

export function failAll(call: Call, error: unknown): void {
  call.fail(error)
  if (call.alike) for (const other of call.alike) other.fail(error)
}

/** The calls that somebody still waits for. */
export function stillWaitedFor(calls: Call[]): Call[] {
  return calls.some(isForGone) ? withoutGone(calls) : calls
}

function isForGone({ caller, alike }: Call): boolean {
  return caller?.gone === true || (alike !== undefined && alike.some(isForGone))
}

/** The first of each key with the others that are alike. */
function withoutGone(calls: readonly Call[]): Call[] {
  const left: Call[] = []
  for (const call of calls) {
    const [first, ...alike] = [call, ...(call.alike ?? [])].filter((each) => {
      if (each.caller?.gone)
        each.fail(new StoreError('STORE_TIMEOUT', 'the caller gave up before it was sent', { sent: false }))
      return !each.caller?.gone
    })
    if (!first) continue
    first.alike = alike.length > 0 ? alike : undefined
    left.push(first)
  }
  return left
}
