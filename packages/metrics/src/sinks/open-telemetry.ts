import { PolicyError } from '@sluice/core'
import { warnProcessOnce } from '@sluice/core/internal'
import { DURATION_BUCKETS, type Instrument, type InstrumentId, INSTRUMENTS } from '../instruments.js'
import { type Attributes, readAll, type RecordDuration, type Sink } from './sink.js'

/** The part of an OpenTelemetry `Meter` that is used. A meter is handed in: a second copy of its API would be silent. */
export interface MeterLike {
  createHistogram(name: string, options: object): { record(value: number, attributes: Attributes): void }
  createCounter(name: string, options: object): CounterLike
  createUpDownCounter(name: string, options: object): CounterLike
  createObservableGauge(name: string, options: object): ObservableLike
}

interface CounterLike {
  add(value: number, attributes: Attributes): void
}

interface ObservableLike {
  addCallback(read: (result: { observe(value: number, attributes: Attributes): void }) => void): void
}

const CREATE = {
  counter: 'createCounter',
  'up-down counter': 'createUpDownCounter',
  gauge: 'createObservableGauge',
} as const

/**
 * Makes the sink of a meter of OpenTelemetry. Whenever the meter collects, gauges read their values from all sources, and each
 * counter is given what it has grown by since. (An observable counter keeps only the last of several values under one set of
 * attributes, as when a View drops some attributes; those of a counter add up.) Durations are recorded in histograms at once. A
 * meter whose instruments are all one object records nothing: the process is warned.
 * @throws {PolicyError} INVALID_OPTION for an object that is no meter.
 */
export function openTelemetrySink(meter: MeterLike): Sink {
  for (const method of [...Object.values(CREATE), 'createHistogram'] as const) {
    if (typeof meter?.[method] === 'function') continue
    throw new PolicyError(
      'INVALID_OPTION',
      `meter must be a Meter of OpenTelemetry, as metrics.getMeter('app') returns it: it has no ${method}()`,
    )
  }
  const sources: Sink['sources'] = new Map()
  const instruments: object[] = []
  const counters: (() => void)[] = []
  for (const [id, { kind, ...instrument }] of Object.entries(INSTRUMENTS) as [InstrumentId, Instrument][]) {
    if (kind === 'histogram') continue
    const made = meter[CREATE[kind]](instrument.name, optionsOf(instrument))
    instruments.push(made)
    if ('add' in made) counters.push(growthAdder(made, sources, id, kind))
    else
      made.addCallback((result) => {
        // With one of the gauges: the SDK calls all callbacks before it reads any instrument.
        if (id === 'limit') for (const add of counters) add()
        readAll(sources, id, (value, attributes) => result.observe(value, attributes))
      })
  }
  if (new Set(instruments).size < instruments.length)
    warnProcessOnce('METER_RECORDS_NOTHING', RECORDS_NOTHING)
  return {
    sources,
    observed: new WeakMap(),
    storeDuration: histogram(meter, INSTRUMENTS.storeDuration),
    acquireDuration: histogram(meter, INSTRUMENTS.acquireDuration),
  }
}

const RECORDS_NOTHING =
  'observe() was given a meter that records nothing, as metrics.getMeter() returns it before the SDK has started: start the SDK first'

/**
 * Returns a function that adds to a counter what each of its series (values under one set of attributes) has grown by since the
 * last call; at the first, its value. A series of the kind 'counter' never falls: if it is gone, nothing is added, and if it is below
 * its former value, it has begun anew, from 0. A series of another kind that is gone falls to 0.
 */
function growthAdder(
  counter: CounterLike,
  sources: Sink['sources'],
  id: InstrumentId,
  kind: Instrument['kind'],
): () => void {
  let lastValues = new Map<string, readonly [value: number, attributes: Attributes]>()
  return () => {
    const currentValues: typeof lastValues = new Map()
    readAll(sources, id, (value, attributes) => {
      const series = JSON.stringify(attributes)
      currentValues.set(series, [value + (currentValues.get(series)?.[0] ?? 0), attributes])
    })
    // A queue or store that is observed no more has nothing that waits or is kept.
    for (const [series, [value, attributes]] of lastValues)
      if (!currentValues.has(series)) currentValues.set(series, [kind === 'counter' ? value : 0, attributes])
    for (const [series, [value, attributes]] of currentValues) {
      const lastValue = lastValues.get(series)?.[0]
      const hasBegunAnew = kind === 'counter' && lastValue !== undefined && value < lastValue
      if (value !== lastValue) counter.add(hasBegunAnew ? value : value - (lastValue ?? 0), attributes)
    }
    lastValues = currentValues
  }
}

/** Makes a histogram of durations, with the buckets of Prometheus, and returns the function that records a duration in seconds. */
function histogram(meter: MeterLike, instrument: Instrument): RecordDuration {
  const advice = { explicitBucketBoundaries: DURATION_BUCKETS }
  const created = meter.createHistogram(instrument.name, { ...optionsOf(instrument), advice })
  return (seconds, attributes) => created.record(seconds, attributes)
}

/** The options with which a meter makes an instrument: its unit, and its meaning as the description. */
function optionsOf({ unit, meaning }: Pick<Instrument, 'unit' | 'meaning'>): object {
  return { unit, description: meaning }
}
