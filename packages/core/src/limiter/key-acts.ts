import type { Correction } from '../stores/store.js'
import { storedKey } from '../values/key.js'
import type { KeyRecord } from './key-record.js'
import type { ActOptions, OverriddenLimiter } from './overrides.js'

/*
 * Blocks, holds and their ends. The state of a key denies, and a record says who wants that and why. The two may lie in two places of a
 * store, so each act changes the record, then the state, and then reads the records again: where another process has changed them
 * meanwhile, the state is made what they say. As all acts do so, the last to write a record wins, and no race leaves a state without
 * its record, or a record without its state. A process that ends in between may.
 */

export type KeyAct = Extract<Correction, { readonly kind: 'block' | 'hold' | 'reset' }>
/** Makes a change of a key in each state that the limiter keeps of it. */
type Correct = (change: KeyAct) => Promise<void>

/**
 * Blocks or holds a key and records it, a hold only where it has words. Beyond 10,000 records the act is without one.
 * @throws {StoreError} also where the state denies by now, and its record could not be written or read.
 */
export async function impose(
  of: OverriddenLimiter,
  change: Exclude<KeyAct, { readonly kind: 'reset' }>,
  words: ActOptions,
  correct: Correct,
): Promise<void> {
  const { known } = of.records
  const { kind, key, duration } = change
  const { reason, by } = words
  if (!known || (kind === 'hold' && (reason ?? by) === undefined)) return correct(change)
  const subject = { kind, limiter: of.name, stored: storedKey(key) }
  const end = known.now() + duration
  const former = known.get(subject)
  // A hold never shortens a longer one, so the record of that stays.
  const isLonger = kind === 'hold' && former !== undefined && former.until > end
  const writing = isLonger ? former.version : known.write(subject, { key, reason, by }, { life: duration })
  await Promise.allSettled([writing]) // the state denies also without its record
  await correct(change)
  for (let version = await writing; version !== undefined;) {
    await known.update()
    const record = known.get(subject)
    if (version === (record?.version ?? 0)) return
    const left = Math.ceil(end - known.now())
    if (!record && kind === 'hold') {
      // A reset has removed the record, and only a further reset would end the hold.
      return left > 0 ? impose(of, { ...change, duration: left }, words, correct) : undefined
    }
    version = record?.version ?? 0
    await correct(record ? changeBy(record, known.now()) : { ...change, duration: 0 })
  }
}

/**
 * Ends the block of a key or resets it, and removes the records of what ends.
 * @throws {StoreError} also where that is done, and a record could not be removed or read.
 */
export async function lift(of: OverriddenLimiter, change: KeyAct, correct: Correct): Promise<void> {
  const { known } = of.records
  if (!known) return correct(change)
  const kinds = change.kind === 'reset' ? (['block', 'hold'] as const) : (['block'] as const)
  const subject = { limiter: of.name, stored: storedKey(change.key) }
  const found = (): readonly KeyRecord[] => kinds.flatMap((kind) => known.get({ kind, ...subject }) ?? [])
  for (let round = 1; ; round++) {
    // What the first reading finds may have been written before this act. What is found later was written beside it, and stays.
    const removing = round > 2 ? [] : found().map((record) => known.write(record))
    await Promise.allSettled(removing)
    await correct(change)
    await Promise.all(removing)
    const kept = found()
    for (const record of kept) await correct(changeBy(record, known.now()))
    await known.update()
    if (versionsOf(found()) === versionsOf(kept)) return
  }
}

/** The change by which a state denies for as long as a record says, in whole microseconds. */
function changeBy({ kind, content: { key }, until }: KeyRecord, now: number): KeyAct {
  return { kind: kind as 'block' | 'hold', key, duration: Math.max(0, Math.ceil(until - now)) }
}

const versionsOf = (records: readonly KeyRecord[]): string => records.map(({ version }) => version).join()
