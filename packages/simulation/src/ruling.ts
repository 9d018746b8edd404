import { LEDGER, type Member, type Rule } from './member.js'
import type { Call } from './plan.js'

const MONTH_MS = 30 * 86_400_000

/** Makes or removes an override or a block of a key of the ledger, by the number of the call. */
export async function rule({ key, id, maxWait }: Call, member: Member): Promise<void> {
  const { ledger, world } = member
  const who = { reason: 'a test', by: 'the simulation' }
  const isShort = id % 2 === 1
  const lastsMs = isShort ? 500 + maxWait : MONTH_MS
  const begin = (kind: Rule['kind'], limit: number | undefined, ms: number): Rule => {
    const made = { kind, key, member, limit, lasts: ms * 1000, from: world.now, until: Infinity }
    member.rules.push(made)
    world.trace(`${member.name} ${id} ${kind} ${key} ${limit} for ${ms} ms`)
    return made
  }
  const how = Math.floor(id / 2) % 8
  let made: Rule
  if (how === 0) await ledger.removeOverride((made = begin('override', undefined, 0)).key)
  else if (how === 1) await ledger.unblock((made = begin('block', undefined, 0)).key)
  else if (how < 4) {
    const ms = isShort ? 100 + Math.ceil(maxWait / 2) : 4000
    made = begin('block', 0, ms)
    await ledger.block(key, ms, who)
  } else {
    const limit =
      how === 4 && key === 'ledger3'
        ? Infinity
        : how === 5
          ? 2 * LEDGER
          : how === 6
            ? 1 + (id % 5)
            : LEDGER + id
    made = begin('override', limit, lastsMs)
    const what =
      limit === Infinity ? { exempt: true as const } : limit === 2 * LEDGER ? { factor: 2 } : { limit }
    await ledger.override(key, { ...what, ...who, until: lastsMs, force: true })
  }
  made.until = world.now
}
