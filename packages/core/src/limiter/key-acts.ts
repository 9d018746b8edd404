import type { Correction } from '../stores/store.js'
import { storedKey } from '../values/key.js'
import type { KeyRecord } from './key-record.js'
import type { ActOptions, OverriddenLimiter } from './overrides.js'

/*
 * Blocks, holds and their ends. The state of a key denies, and a record says who wants that and why. The two may lie in two places of a
 * store. Each act changes the state at once, and the record beside it; after a record it changes the state once more, and then reads the
 * records: where another process has written one meanwhile, a block makes the state what that says, and what ends a block removes that
 * too. As all acts do so, the last to write a record wins, and no race leaves a state without its record, or a record without its
 * state. A process that ends in between may.
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
  const held = kind === 'hold' && known.get(subject)
  // A hold never shortens a longer one, so the record of that stays.
  const stays = held && held.until > end
  const writing = stays ? held.version : known.write(subject, { key, reason, by }, { life: duration })
  let left = duration
  let [version] = await Promise.all([writing, correct(change)])
  while (version !== undefined) {
    await correct({ ...change, duration: left })
    await known.update()
    const { version: latest = 0, until = 0 } = known.get(subject) ?? {}
    if (version === latest) return
    version = latest
    // In whole microseconds, as the protocol of a machine has them.
    left = Math.max(0, Math.ceil(until - known.now()))
    // A reset has removed the record of a hold, which the state may have by now, and gives up for a further reset alone.
    if (latest === 0 && kind === 'hold')
      return end > known.now() ? impose(of, change, words, correct) : undefined
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
  const find = (): readonly KeyRecord[] => kinds.flatMap((kind) => known.get({ kind, ...subject }) ?? [])
  let found = find()
  do {
    const removing = found.map((record) => known.write(record))
    await Promise.all([...removing, correct(change)])
    if (removing.length > 0) await correct(change)
    await known.update()
    found = find()
  } while (found.length > 0)
}
