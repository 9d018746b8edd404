import type { Decision } from '@sluice/core'
import type { Deed, Member, Reserved } from './member.js'
import type { Call } from './plan.js'

/** Milliseconds from its turn or an extension to its end. */
export function ttlOf({ maxWait }: Call): number {
  return 200 + maxWait
}

/**
 * Reserves. The holder settles it, extends it before, settles it while another process does, releases it, or forgets it, by the number of
 * its call; not, if it dies.
 */
export async function reserve(call: Call, member: Member, other: Member | undefined): Promise<Decision> {
  const { budget, link, process, world } = member
  const { key, cost, units, id, holds } = call
  const ttl = ttlOf(call)
  const decision = await budget.reserve(key, { cost, atEnd: units, ttl })
  const { reservation } = decision
  if (!reservation) return decision
  const end = decision[process.core.ANSWER].now + ttl * 1000
  const made: Reserved = { call, at: world.now, execution: link.delivered, end, deeds: [] }
  member.reserved.push(made)
  const later = (ms: number, by: Member, units: number | undefined, act: () => Promise<unknown>): void => {
    world.after(ms * 1000, by.process, () => {
      const deed: Deed = { at: world.now, units, told: undefined, execution: undefined, error: undefined }
      made.deeds.push(deed)
      world.trace(`${by.name} ${id} settle ${units}`)
      act().then(
        (told) => {
          world.trace(`${by.name} ${id} settled ${JSON.stringify(told)}`)
          Object.assign(deed, { told: told ?? {}, execution: by.link.delivered })
        },
        // Once more, which a holder may.
        (error: Deed['error']) => {
          deed.error = error
          by.failed(call, error)
          if (units !== undefined && made.deeds.length < 4) later(500, by, units, act)
        },
      )
    })
  }
  const real = (id * 7) % (cost + 3)
  const how = id % 5
  if (how === 1) later(holds / 2, member, undefined, () => reservation.extend(ttl))
  if (how === 2 && other) {
    const its = other.budget.reservation(key, reservation.id)
    later(holds + (id % 3), other, real + 1, () => its.settle(real + 1))
  }
  if (how === 3) later(holds, member, 0, () => reservation.release())
  else if (how !== 4) later(holds, member, real, () => reservation.settle(real))
  return decision
}
