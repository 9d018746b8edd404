import * as fc from 'fast-check'
import { type Options, type Shape, starts, type Step, traffic } from '@sluice/testing/internal'
import { bookedBy } from './booked-by.js'
import { listsOf } from './sequences.js'

/** Calls of one key, most of which are slow and give back what they did not need. */
export interface GivenBackScenario {
  readonly shapes: readonly Shape[]
  readonly numbers: readonly Options[]
  readonly start: number
  readonly steps: readonly Step[]
  /** In milliseconds; none: every call asks the store. */
  readonly leaseTtl: number | undefined
  /** The steps during which the store cannot be reached; none: it always can. */
  readonly outage: { readonly from: number; readonly steps: number } | undefined
}

const KINDS = { consume: 8, book: 6, release: 6, cancel: 3 }
/** In milliseconds; of the last one a tick is 1 ms. */
const WINDOWS = [10, 1000, 60_000, 7_200_000]
/** Leases last a part of the window. */
const PARTS_OF_WINDOW = [2, 5, 10]

const ALL = { of: 'remaining', units: 3 } as const
const FOR_NOTHING = { kind: 'release', of: 'capacity', units: 3 } as const
/** The charge before the newest one. */
const BEFORE = { pick: 1, parts: 1 } as const

/** How sequences end where a mistake would show: calls that were for nothing give back what they charged. */
const ENDINGS: Readonly<Record<string, readonly Partial<Step>[]>> = {
  'as drawn': [],
  'a queue behind slow calls': [
    { kind: 'consume', to: 'part', ...ALL },
    { kind: 'book', wait: 'windows', parts: 12 },
    { ...FOR_NOTHING, ...BEFORE },
    { ...FOR_NOTHING, ...BEFORE },
  ],
  'a call as slow as two windows': [
    { kind: 'consume', to: 'part', ...ALL },
    { kind: 'consume', to: 'idle', parts: 8, off: 0, ...ALL },
    { ...FOR_NOTHING, ...BEFORE },
  ],
}

const ANY: Step = {
  kind: 'consume',
  tier: 0,
  pick: 0,
  to: 'stay',
  parts: 1,
  off: 0,
  of: 'nothing',
  units: 1,
  wait: 'windows',
  waitOff: 0,
}

/**
 * Most steps take a small part of a window, so that what is given back still counts. Every fourth call takes all that is
 * left, and every second one that gives back was for nothing.
 */
const steps = fc
  .tuple(
    fc.constantFrom(...Object.values(ENDINGS)),
    traffic({ kinds: KINDS }),
    traffic({ kinds: KINDS }),
    traffic({ kinds: KINDS }),
  )
  .map(([ending, ...parts]) => [
    ...parts.flat().map((step): Step => ({ ...step, ...amountOf(step), ...moveOf(step) })),
    ...ending.map((step): Step => ({ ...ANY, ...step })),
  ])

/**
 * How a step is changed to give back more often: some calls take most of what remains, some releases give back most of the
 * capacity.
 */
function amountOf({ kind, pick }: Step): Partial<Step> {
  if (kind === 'consume' && pick === 0) return { of: 'remaining', units: 3 }
  return kind === 'release' && pick < 2 ? { of: 'capacity', units: 3 } : {}
}

/** How a step is changed to move the clock less: within the window, or not at all. */
function moveOf({ parts, pick }: Step): Partial<Step> {
  return parts % 3 === 0 ? {} : { to: pick < 2 ? 'part' : 'stay', parts: 1 + (parts % 6) }
}

/** Draws scenarios in which calls give units back: policies and their numbers, steps, and sometimes leases and an outage. */
export function givenBackScenarios(all: readonly Shape[]): fc.Arbitrary<GivenBackScenario> {
  const drawn = fc.tuple(listsOf(all), fc.constantFrom(...WINDOWS))
  return drawn.chain(([shapes, window]) =>
    fc
      .record({
        shapes: fc.constant(shapes),
        numbers: fc.tuple(...shapes.map((shape) => numbersOf(shape, window))),
        start: starts,
        steps,
        leaseTtl: fc.option(
          fc.constantFrom(...PARTS_OF_WINDOW).map((part) => window / part),
          { nil: undefined, freq: 2 },
        ),
        outage: fc.option(fc.record({ from: fc.nat(15), steps: fc.nat(30) }), { nil: undefined, freq: 2 }),
      })
      .filter(isLeasable),
  )
}

/** Draws a limit, and a capacity where the algorithm has one, that are valid for a window in milliseconds. */
function numbersOf(shape: Shape, window: number): fc.Arbitrary<Options> {
  const { capacity, draws = [] } = shape.model
  const units = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 20, max: 200 }))
  return fc
    .tuple(units, fc.constantFrom(1, 3, undefined), units, fc.constantFrom({}, ...draws))
    .map(([limit, factor, most, extra]): Options => {
      const own = capacity ? { [capacity]: factor ? factor * limit : most } : {}
      return { ...extra, ...shape.variant, window, limit, ...own }
    })
    .filter((options) => isValid(shape, options))
}

/** Whether an algorithm takes these options. */
function isValid({ factory }: Shape, options: Options): boolean {
  try {
    factory(options)
    return true
  } catch {
    return false // buckets that do not divide the window
  }
}

/** Whether leases of that time can serve the policies of a scenario; true without leases. */
function isLeasable({ shapes, numbers, leaseTtl }: GivenBackScenario): boolean {
  return leaseTtl === undefined || shapes.every((shape, i) => bookedBy(shape, numbers[i]!, leaseTtl))
}
