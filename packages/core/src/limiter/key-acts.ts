import type { Correction } from '../stores/store.js'
import { sleep } from '../values/abort.js'
import { storedKey } from '../values/key.js'
import type { KeyRecord, RecordSubject } from './key-record.js'
import type { KnownRecords } from './known-records.js'
import type { ActOptions, OverriddenLimiter } from './overrides.js'

/*
 * Blocks, holds and their ends. The state of a key denies, and a record says who wants that and why. The two may lie in two places of a
 * store. Each act changes the state at once, and the record beside it; after a record it changes the state once more, and then reads the
 * records: where another process has written one meanwhile, a block makes the state what that says, and what ends a block removes that
 * too. As all acts do so, the last to write a record wins, and no race leaves a state without its record, or a record without its
 * state. A process that ends in between may. The acts of one process on one key change its state in their order, and its records one
 * act after the other.
 */

export type KeyAct = Extract<Correction, { readonly kind: 'block' | 'hold' | 'reset' }>
/** Makes a change of a key in each state that the limiter keeps of it. */
type ChangeState = (change: KeyAct) => Promise<void>

/**
 * Blocks or holds a key, and writes a record of that, from which all processes see until when, why and by whom. A hold without a
 * reason or a name has no record, and none is written beyond 10,000. Another process may write the same record meanwhile: the
 * state is then made to follow the later one (`followRecord`).
 * @throws {StoreError} also if the state was changed, but its record could not be written or read.
 */
export async function impose(
  of: OverriddenLimiter,
  change: Exclude<KeyAct, { readonly kind: 'reset' }>,
  { reason, by }: ActOptions,
  changeState: ChangeState,
): Promise<void> {
  const { known } = of.records
  const { kind, key, duration } = change
  const hasReasonOrName = (reason ?? by) !== undefined
  if (!known || (kind === 'hold' && !hasReasonOrName)) return changeState(change)
  const subject = { kind, limiter: of.name, stored: storedKey(key) }
  const end = known.now() + duration
  const writeRecord = (life: number) => known.write(subject, { key, reason, by }, { life })
  await afterEarlierActs(
    known,
    subject,
    () => changeState(change),
    async (stateChanged) => {
      const earlierHold = kind === 'hold' ? known.get(subject) : undefined
      // A hold never shortens a longer one, so the record of that stays.
      const longerHold = earlierHold && earlierHold.until > end ? earlierHold : undefined
      const timeLeft = timeUntil(end, known)
      const written = longerHold ? longerHold.version : writeRecord(timeLeft)
      const [version] = await Promise.all([written, stateChanged()])
      const areTooManyRecords = version === undefined
      if (areTooManyRecords) return
      await followRecord({ known, subject, change, end, changeState, writeRecord }, version, timeLeft)
    },
  )
}

/** A block or hold whose record is written. */
interface RecordedAct {
  readonly known: KnownRecords
  readonly subject: RecordSubject
  readonly change: Exclude<KeyAct, { readonly kind: 'reset' }>
  /** The instant at which it was to end. */
  readonly end: number
  readonly changeState: ChangeState
  /** Writes the record once more, for `life` microseconds. Returns its version; undefined where there are too many. */
  readonly writeRecord: (life: number) => Promise<number | undefined>
}

/**
 * Makes the state of a key what the record of a block or hold says, until no other process has changed the record meanwhile.
 * `version` is that of the record as this process wrote it, and `timeLeft` the microseconds until its end.
 */
async function followRecord(act: RecordedAct, version: number, timeLeft: number): Promise<void> {
  const { known, subject, change, end, changeState, writeRecord } = act
  let timesRemoved = 0
  for (;;) {
    await changeState({ ...change, duration: timeLeft })
    await known.update()
    const { version: latest, until } = known.get(subject) ?? NO_RECORD
    if (version === latest) return
    version = latest
    timeLeft = timeUntil(until, known)
    const wasHoldRemoved = latest === NO_RECORD.version && change.kind === 'hold'
    if (!wasHoldRemoved) continue
    // A reset of another process has removed the record of a hold. The state may have the hold by now, and would give it up for a
    // further reset alone, so the rest of it is made anew: after a random pause, as the other one may answer to that.
    timeLeft = timeUntil(end, known)
    if (timeLeft === 0) return
    if (timesRemoved++ > 0) await sleep(Math.random() * MOST_PAUSE_MS, undefined)
    const written = await writeRecord(timeLeft)
    const areTooManyRecords = written === undefined
    if (areTooManyRecords) return
    version = written
  }
}

const NO_RECORD = { version: 0, until: 0 }

/** The time until an instant, in whole microseconds, as the protocol of a machine has them. */
function timeUntil(instant: number, known: KnownRecords): number {
  return Math.max(0, Math.ceil(instant - known.now()))
}

const MOST_PAUSE_MS = 100

/** For the records of each store the latest act on a key, as long as it goes on. */
const UNDER_WAY = new WeakMap<KnownRecords, Map<string, Promise<void>>>()

/**
 * Runs `act`, which writes records of a change of a key, after all earlier acts of this process on the key, so that records are written
 * in order. The state does not wait: if there are earlier acts, `changeState` is called at once. `act` calls `stateChanged` at its time,
 * which waits for the end of that change, or makes it if it was not begun.
 */
async function afterEarlierActs(
  known: KnownRecords,
  { limiter, stored }: Omit<RecordSubject, 'kind'>,
  changeState: () => Promise<void>,
  act: (stateChanged: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const acts = UNDER_WAY.get(known) ?? new Map<string, Promise<void>>()
  UNDER_WAY.set(known, acts)
  const id = `${limiter}\n${stored}`
  const earlier = acts.get(id)
  const begunChange = earlier && changeState()
  begunChange?.catch(() => {}) // until `act` waits for it
  const run = (): Promise<void> => act(begunChange ? () => begunChange : changeState)
  const own = earlier ? earlier.then(run, run) : run()
  acts.set(id, own)
  const forgetIfLatest = (): void => void (acts.get(id) === own && acts.delete(id))
  own.then(forgetIfLatest, forgetIfLatest)
  return own
}

/**
 * Ends the block of a key, or resets the key, which also ends a hold: changes the state, and removes the records of what ends. If
 * another process writes such a record meanwhile, does both again, until none is found.
 * @throws {StoreError} also if the state was changed, but a record could not be removed or read.
 */
export async function lift(of: OverriddenLimiter, change: KeyAct, changeState: ChangeState): Promise<void> {
  const { known } = of.records
  if (!known) return changeState(change)
  const kinds = change.kind === 'reset' ? (['block', 'hold'] as const) : (['block'] as const)
  const subject = { limiter: of.name, stored: storedKey(change.key) }
  const findRecords = (): readonly KeyRecord[] =>
    kinds.flatMap((kind) => known.get({ kind, ...subject }) ?? [])
  const removeRecords = (records: readonly KeyRecord[]) => records.map((record) => known.write(record))
  const endOfBlock = { kind: 'block', key: change.key, duration: 0 } as const
  await afterEarlierActs(
    known,
    subject,
    () => changeState(change),
    async (stateChanged) => {
      let found = findRecords()
      await Promise.all([...removeRecords(found), stateChanged()])
      // Again while another process writes a record in between.
      do {
        // What was consumed since the first reset stays, except where only a further one ends a hold.
        const isHeld = found.some(({ kind }) => kind === 'hold')
        if (found.length > 0) await changeState(isHeld ? change : endOfBlock)
        await known.update()
        found = findRecords()
        await Promise.all(removeRecords(found))
      } while (found.length > 0)
    },
  )
}
