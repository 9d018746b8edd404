import * as fc from 'fast-check'
import type { Options, Shape } from '@sluice/testing/internal'
import { bookedBy } from './booked-by.js'

/** Processes with leases who call for one key, under one or several policies. Times in microseconds. */
export interface LeasedScenario {
  readonly shapes: readonly Shape[]
  /** One or two sets of numbers for each shape. */
  readonly tiers: readonly (readonly Options[])[]
  readonly leases: { readonly ttl: number; readonly size: number }
  /** The times that calls and answers take on their way, in turn. */
  readonly delays: readonly number[]
  readonly bursts: readonly Burst[]
}

export interface Burst {
  /** After the last call of the one before, or before the end of the window that lasts then. */
  readonly from: 'last' | 'end'
  readonly gap: number
  /** Between two of its calls. */
  readonly pace: number
  readonly process: number
  readonly tier: number
  readonly kind: 'consume' | 'peek'
  readonly cost: number
  readonly times: number
}

export const PROCESSES = 3

/** In milliseconds: the last one takes windows to where a tick is 1 ms. */
const TTLS = [1000, 1100, 60_000, 3_600_000]
/** Windows as multiples of the ttl. */
const FACTORS = [1, 2, 2.5, 3, 4, 10]

/** Draws scenarios of a fleet with leases: policies under one or two sets of numbers, delays of the network, and bursts of calls. */
export function leasedScenarios(lists: fc.Arbitrary<readonly Shape[]>): fc.Arbitrary<LeasedScenario> {
  const leases = fc.record({ ttl: fc.constantFrom(...TTLS), size: fc.constantFrom(1, 3, 10, 100) })
  return fc.tuple(lists, leases, fc.constantFrom(1, 1, 2)).chain(([shapes, { ttl, size }, count]) => {
    const numbers = fc.tuple(...shapes.map((shape) => tiersOf(shape, ttl, count)))
    return fc.record({
      shapes: fc.constant(shapes),
      tiers: numbers.map((drawn) => Array.from({ length: count }, (_, i) => drawn.map((each) => each[i]!))),
      leases: fc.constant({ ttl, size }),
      delays: delays(ttl * 1000),
      bursts: fc.array(burst(ttl * 1000, count), { minLength: 6, maxLength: 16 }),
    })
  })
}

/** Sets of numbers that differ in limit and capacity, all of which leave units to lease. */
function tiersOf(shape: Shape, ttl: number, count: number): fc.Arbitrary<readonly Options[]> {
  const { capacity, draws = [] } = shape.model
  const units = fc.oneof(
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 12 }) },
    { weight: 3, arbitrary: fc.integer({ min: 20, max: 200 }) },
  )
  return fc
    .record({ factor: fc.constantFrom(...FACTORS), extra: fc.constantFrom({}, ...draws) })
    .map(({ factor, extra }) => ({ ...extra, ...shape.variant, window: ttl * factor }))
    .chain((fixed) => {
      const tier = fc.tuple(units, fc.option(units)).map(([limit, most]): Options => {
        return capacity && most !== null ? { ...fixed, limit, [capacity]: most } : { ...fixed, limit }
      })
      return fc.tuple(...Array.from({ length: count }, () => tier))
    })
    .filter((drawn) => drawn.every((options) => isValid(shape, options) && bookedBy(shape, options, ttl)))
}

/** Whether an algorithm takes these options: buckets have to divide the window. */
function isValid({ factory }: Shape, options: Options): boolean {
  try {
    factory(options)
    return true
  } catch {
    return false
  }
}

/** No time, as long as a lease lasts there and back, or anything in between; and ways on which leases end. */
function delays(ttl: number): fc.Arbitrary<readonly number[]> {
  const list = (max: number) => fc.array(fc.integer({ min: 0, max }), { minLength: 1, maxLength: 20 })
  const half = ttl / 2 - 1000
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom([0], [0], [half]) },
    { weight: 2, arbitrary: list(Math.floor(ttl / 200)) },
    { weight: 1, arbitrary: list(half) },
    { weight: 1, arbitrary: list(2 * ttl) },
  )
}

/** Moments at which leases and windows are about to end are where a mistake would show. */
function burst(ttl: number, tiers: number): fc.Arbitrary<Burst> {
  const ends = FACTORS.flatMap((factor) => [factor * ttl, factor * ttl - ttl / 200, (factor - 1) * ttl])
  const gap = fc.oneof(
    { weight: 4, arbitrary: fc.integer({ min: 0, max: ttl / 10 }) },
    { weight: 4, arbitrary: fc.integer({ min: ttl / 2, max: ttl }) },
    { weight: 2, arbitrary: fc.constantFrom(ttl / 2, ...ends) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 5 * ttl }) },
  )
  return fc.record({
    from: fc.constantFrom('last', 'last', 'end'),
    gap,
    pace: fc.constantFrom(0, 7, ttl / 500, ttl / 500, ttl / 100, Math.floor(ttl / 12)),
    process: fc.constantFrom(0, 0, ...Array.from({ length: PROCESSES }, (_, i) => i)),
    tier: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat({ max: tiers - 1 })),
    kind: fc.constantFrom('consume', 'consume', 'consume', 'consume', 'consume', 'peek'),
    cost: fc.constantFrom(1, 1, 1, 1, 1, 2, 5),
    times: fc.constantFrom(1, 2, 10, 40, 40),
  })
}
