import * as fc from 'fast-check'
import { expectModelled, scenarios } from './comparison.js'
import type { Subject } from './law.js'
import { blocksAndHolds } from './laws/blocks-and-holds.js'
import { boards } from './laws/boards.js'
import { booking } from './laws/booking.js'
import { bounding } from './laws/bounding.js'
import { cancelling } from './laws/cancelling.js'
import { charging } from './laws/charging.js'
import { combining } from './laws/combining.js'
import { correcting } from './laws/correcting.js'
import { deciding } from './laws/deciding.js'
import { drifting } from './laws/drifting.js'
import { identity } from './laws/identity.js'
import { limits } from './laws/limits.js'
import { overriding } from './laws/overriding.js'
import { beginningAnew, penalizing } from './laws/penalizing.js'
import { permits } from './laws/permits.js'
import { promising } from './laws/promising.js'
import { records } from './laws/records.js'
import { releasing } from './laws/releasing.js'
import { reserving } from './laws/reserving.js'
import { settingBack } from './laws/setting-back.js'
import { severalKeys, severalPenalized } from './laws/several-keys.js'
import { taking } from './laws/taking.js'
import { waiting } from './laws/waiting.js'
import { runsIn, runsOf, seedGiven } from './runs.js'
import type { OpenStore } from './session.js'
import { findShapes, type Shape } from './shapes.js'

export interface ConformanceOptions {
  /**
   * Random sequences that are compared with the model, at least 1. Default 10,000; CONFORMANCE_RUNS overrides it, and changes
   * `lawRuns` in proportion.
   */
  readonly sequences?: number
  /** Random traffic on which each law is tried. Default a 125th of `sequences`. */
  readonly lawRuns?: number
  /** Largest cost that this store takes for a list of these shapes. Default 2^31 for all. */
  readonly mostCost?: (shapes: readonly Shape[]) => number
  /** Whether the store counts refusals for penalties. Default true; a limiter with a penalty refuses a store that does not. */
  readonly penalties?: boolean
}

const LAWS = [
  charging,
  waiting,
  bounding,
  promising,
  correcting,
  releasing,
  limits,
  booking,
  cancelling,
  blocksAndHolds,
  combining,
  drifting,
  taking,
  severalKeys,
  deciding,
  overriding,
  reserving,
  settingBack,
]

/**
 * Declares, as tests, what every store has to do: each law of the contract for each shape (an algorithm in one of its variants),
 * the laws of identity, permits, boards and records, and random sequences of calls that the store and a model have to answer alike: half of them
 * under one policy, 30 in 100 under two, 20 in 100 under three. An algorithm of core without a model fails.
 *
 * The test runner must provide `describe` and `it` as globals, as Jest does. `openStore` opens a store for each sequence, on a
 * clock that the sequence sets; its keys are new each time, so all may share one server. CONFORMANCE_RUNS sets the number of
 * sequences, and of runs of the laws in proportion. A failure prints its seed, and CONFORMANCE_SEED tries that seed again.
 * @throws {PolicyError} INVALID_OPTION for numbers of runs, or a seed, that are no whole numbers.
 */
export function conformance(storeName: string, openStore: OpenStore, options: ConformanceOptions = {}): void {
  const { mostCost = () => 2 ** 31, penalties = true } = options
  const most = runsOf(options.sequences, 'sequences', 10_000)
  const lawRuns = runsOf(options.lawRuns, 'lawRuns', most / 125)
  const sequences = runsIn('CONFORMANCE_RUNS', most)
  const seed = seedGiven()
  const laws = penalties ? [...LAWS, penalizing, beginningAnew, severalPenalized] : LAWS
  const trial = { openStore, runs: Math.ceil((lawRuns * sequences) / most), seed }

  describe(`${storeName} store`, () => {
    const { shapes, unjudged } = findShapes()

    for (const title of unjudged) {
      it(`has a model to judge ${title} by`, () => {
        throw new Error(`${title} has no model to be judged by: write conformance/models/${title}.ts`)
      })
    }

    for (const shape of shapes) {
      describe(shape.title, () => {
        const mostCostWith = (other: Shape) => mostCost([shape, other])
        const own = { shape, mostCost: mostCost([shape]), mostCostWith }
        const subject: Subject = { ...own, shapes, ...trial }
        for (const declare of laws) declare(subject)
      })
    }

    describe('identity', () => identity(trial, shapes))
    describe('permits', () => permits(trial))
    describe('boards', () => boards(trial))
    describe('records', () => records(trial))

    /**
     * Declares a test that plays random scenarios, each on one key under policies of the drawn shapes, on the store and on the
     * model: their answers must be the same. `share` is the part of all `sequences` that this test plays.
     */
    const compare = (name: string, lists: fc.Arbitrary<readonly Shape[]>, share: number) => {
      const property = fc.asyncProperty(scenarios(lists, penalties), (scenario) =>
        expectModelled(openStore, scenario, mostCost),
      )
      const numRuns = Math.ceil(sequences * share)
      it(name, () => fc.assert(property, { numRuns, ...(seed === undefined ? {} : { seed }) }), 300_000)
    }

    describe('answers as the model does', () => {
      for (const shape of shapes) compare(`for ${shape.title}`, fc.constant([shape]), 0.5 / shapes.length)
      const any = fc.constantFrom(...shapes)
      compare('for two policies', fc.tuple(any, any), 0.3)
      compare('for three policies', fc.tuple(any, any, any), 0.2)
    })
  })
}
