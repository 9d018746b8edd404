import { PolicyError } from '@sluice/core'
import { DURATION_BUCKETS, type Instrument, type InstrumentId, INSTRUMENTS } from '../instruments.js'
import { type Attributes, readAll, type RecordDuration, type Sink } from './sink.js'

/** The part of prom-client that is used: the module itself, as it was imported. */
export interface PromClientLike {
  readonly Counter: new (configuration: never) => { inc(labels: Attributes, value: number): void }
  readonly Gauge: new (configuration: never) => { inc(labels: Attributes, value: number): void }
  readonly Histogram: new (configuration: never) => { observe(labels: Attributes, value: number): void }
  readonly register: RegistryLike
}

/** The part of a `Registry` of prom-client that is used. */
export interface RegistryLike {
  registerMetric(metric: never): void
}

/**
 * Makes the sink of a registry of prom-client (`client`). Counters and gauges read their values from all sources, which
 * keep the sums, whenever they are scraped; durations are recorded in histograms at once. Metrics are registered as they
 * are made, and by `register` again after the registry was cleared.
 * @throws {PolicyError} INVALID_OPTION for a client that is not prom-client, or a registry that is none of it.
 */
export function prometheusSink(client: PromClientLike, registry: RegistryLike): Sink {
  for (const kind of ['Counter', 'Gauge', 'Histogram'] as const) {
    if (typeof client?.[kind] === 'function') continue
    throw new PolicyError(
      'INVALID_OPTION',
      `prometheus must be the module prom-client, as it is imported: it has no ${kind}`,
    )
  }
  if (typeof registry?.registerMetric !== 'function') {
    throw new PolicyError('INVALID_OPTION', 'registry must be a Registry of prom-client')
  }
  const sources: Sink['sources'] = new Map()
  const metrics: object[] = []
  for (const [id, instrument] of Object.entries(INSTRUMENTS)) {
    if (instrument.kind !== 'histogram') metrics.push(metricOf(client, registry, sources, id as InstrumentId))
  }
  return {
    sources,
    observed: new WeakMap(),
    storeDuration: histogram(INSTRUMENTS.storeDuration),
    acquireDuration: histogram(INSTRUMENTS.acquireDuration),
    register: () => metrics.forEach((metric) => registry.registerMetric(metric as never)),
  }

  /** Makes a histogram of durations, registered with the others, and returns the function that records one in seconds. */
  function histogram(instrument: Instrument): RecordDuration {
    const configuration = { ...optionsOf(instrument, registry), buckets: DURATION_BUCKETS }
    const created = new client.Histogram(configuration as never)
    metrics.push(created)
    return (seconds, attributes) => created.observe(attributes, seconds)
  }
}

/**
 * Makes the counter or gauge of prom-client for an instrument. At each scrape its values are set to 0 and read anew from all
 * sources, which keep the sums themselves; values under the same attributes add up. `aggregator` says how prom-client unites the
 * workers of node:cluster: counts by their sum. Of a gauge, such as a policy's limit, a sum would be wrong, and the smallest value
 * counts (a store is available only if no worker reports otherwise); of an age the largest (`ofWorkers`).
 */
function metricOf(
  client: PromClientLike,
  registry: RegistryLike,
  sources: Sink['sources'],
  id: InstrumentId,
): object {
  const instrument: Instrument = INSTRUMENTS[id]
  const Metric = instrument.kind === 'counter' ? client.Counter : client.Gauge
  return new Metric({
    ...optionsOf(instrument, registry),
    aggregator: instrument.ofWorkers ?? (instrument.kind === 'gauge' ? 'min' : 'sum'),
    collect(this: { reset(): void; inc(labels: Attributes, value: number): void }) {
      this.reset()
      readAll(sources, id, (value, attributes) => this.inc(attributes, value))
    },
  } as never)
}

/** The options with which prom-client makes a metric for an instrument: its name, help text, labels and registry. */
function optionsOf(instrument: Instrument, registry: RegistryLike): object {
  const { meaning, attributes } = instrument
  return { name: prometheusName(instrument), help: meaning, labelNames: attributes, registers: [registry] }
}

/**
 * The instrument's name in Prometheus, with the unit and for a counter `_total` behind it: `sluice_decisions_total`. Collectors of
 * OpenTelemetry write it too; `@opentelemetry/exporter-prometheus` leaves the unit out.
 */
export function prometheusName({ name, kind, unit }: Instrument): string {
  const withUnit = name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '')
  return kind === 'counter' ? `${withUnit}_total` : withUnit
}
