import { PolicyError } from '@sluice/core'
import { DURATION_BUCKETS, type Instrument, type InstrumentId, INSTRUMENTS } from '../instruments.js'
import { type Attributes, readAll, type RecordDuration, type Sink } from './sink.js'

/** The part of an OpenTelemetry `Meter` that is used. A meter is handed in: a second copy of its API would be silent. */
export interface MeterLike {
  createHistogram(name: string, options: object): { record(value: number, attributes: Attributes): void }
  createObservableCounter(name: string, options: object): ObservableLike
  createObservableUpDownCounter(name: string, options: object): ObservableLike
  createObservableGauge(name: string, options: object): ObservableLike
}

interface ObservableLike {
  addCallback(read: (result: { observe(value: number, attributes: Attributes): void }) => void): void
}

const CREATE = {
  counter: 'createObservableCounter',
  'up-down counter': 'createObservableUpDownCounter',
  gauge: 'createObservableGauge',
} as const

/**
 * Makes the sink of a meter of OpenTelemetry. Counters and gauges are observable instruments: whenever the meter collects
 * them, they read their values from all sources, which keep the sums. Durations are recorded in histograms at once.
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
  for (const [id, instrument] of Object.entries(INSTRUMENTS)) {
    if (instrument.kind === 'histogram') continue
    const observable = meter[CREATE[instrument.kind]](instrument.name, optionsOf(instrument))
    observable.addCallback((result) => {
      readAll(sources, id as InstrumentId, (value, attributes) => result.observe(value, attributes))
    })
  }
  return {
    sources,
    observed: new WeakMap(),
    storeDuration: histogram(meter, INSTRUMENTS.storeDuration),
    acquireDuration: histogram(meter, INSTRUMENTS.acquireDuration),
  }
}

/**
 * Makes a histogram of durations on the meter, with the same buckets as for Prometheus, and returns the function that
 * records one duration in seconds.
 */
function histogram(meter: MeterLike, instrument: Instrument): RecordDuration {
  const advice = { explicitBucketBoundaries: DURATION_BUCKETS }
  const created = meter.createHistogram(instrument.name, { ...optionsOf(instrument), advice })
  return (seconds, attributes) => created.record(seconds, attributes)
}

/** The options with which a meter makes an instrument: its unit, and its meaning as the description. */
function optionsOf({ unit, meaning }: Instrument): object {
  return { unit, description: meaning }
}
