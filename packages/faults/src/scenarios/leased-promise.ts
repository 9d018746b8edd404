import { ruleOf } from '@sluice/testing/internal'
import { isAligned } from '../every-algorithm.js'
import type { Booked, Served } from './leased-fleet.js'
import type { LeasedScenario } from './leased-scenarios.js'

/*
 * The promise of docs/decisions/0008-leases.md, counted again from what was served and booked. Microseconds.
 */

/** The first span in which more was served than the declared numbers allow, under each policy by itself. */
export function excess({ shapes, tiers, leases, delays }: LeasedScenario, served: readonly Served[]) {
  // A caller whose answer takes longer than a lease lasts is promised nothing by it.
  const isLate = 2 * Math.max(...delays) > leases.ttl * 1000
  for (const [i, shape] of shapes.entries()) {
    const rule = ruleOf(shape.model, tiers[0]![i]!)
    // Windows and refills begin at instants of the store's clock.
    const byStore = isLate || isAligned(shape)
    const { model } = shape
    const calls = served.map(({ at, decidedAt, cost }) => ({ at: BigInt(byStore ? decidedAt : at), cost }))
    const span = overfull(calls, (from, to) => (model.leasedBound ?? model.bound)(rule, from, to))
    if (span) return `${shape.title}: ${span}`
  }
  return undefined
}

/**
 * The first span, from one call to another, in which more was served than `bound` allows, as a text; undefined if there is
 * none.
 */
function overfull(
  calls: readonly { readonly at: bigint; readonly cost: number }[],
  bound: (from: bigint, to: bigint) => bigint,
): string | undefined {
  const sorted = calls.toSorted((a, b) => Number(a.at - b.at))
  for (const [i, { at: from }] of sorted.entries()) {
    let sum = 0
    for (const [j, { at: to, cost }] of sorted.slice(i).entries()) {
      sum += cost
      if (sorted[i + j + 1]?.at !== to && BigInt(sum) > bound(from, to))
        return `${sum} served in ${to - from} us, where ${bound(from, to)} are the most`
    }
  }
  return undefined
}

/** The first call whose units its process had not booked within the ttl before it was served, each unit for one call. */
export function unbooked(
  ttl: number,
  booked: readonly Booked[],
  served: readonly Served[],
): string | undefined {
  const events = [
    ...booked.map(({ process, at, cost }) => ({ process, at, units: cost })),
    ...served.map(({ process, decidedAt, cost }) => ({ process, at: decidedAt, units: -cost })),
  ].toSorted((a, b) => a.at - b.at || b.units - a.units)
  const held = new Map<number, { readonly at: number; units: number }[]>()
  for (const { process, at, units } of events) {
    const slices = (held.get(process) ?? []).filter((slice) => at - slice.at < ttl)
    held.set(process, slices)
    if (units > 0) slices.push({ at, units })
    let wanted = Math.max(0, -units)
    for (const slice of slices) {
      const taken = Math.min(slice.units, wanted)
      slice.units -= taken
      wanted -= taken
    }
    if (wanted > 0) return `process ${process} served ${wanted} units that it had not booked within the ttl`
  }
  return undefined
}
