import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import * as promClient from 'prom-client'
import { INSTRUMENTS, type ObserveOptions, prometheusName } from '../src/index.js'

/** One series: its attributes and its value, of a histogram the number of values. */
export interface Series {
  readonly attributes: Readonly<Record<string, unknown>>
  readonly value: number
}

/** A real SDK, and what it collects. */
export interface Reader {
  readonly options: ObserveOptions
  read(id: keyof typeof INSTRUMENTS): Promise<readonly Series[]>
  close(): Promise<unknown>
}

export const READERS: readonly (readonly [name: string, open: () => Reader])[] = [
  ['OpenTelemetry', openTelemetry],
  ['prom-client', prometheus],
]

function openTelemetry(): Reader {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const provider = new MeterProvider({
    readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e8 })],
  })
  return {
    options: { meter: provider.getMeter('test') },
    async read(id) {
      exporter.reset()
      await provider.forceFlush()
      const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics)
      return metrics
        .flatMap((scope) => scope.metrics)
        .filter(({ descriptor }) => descriptor.name === INSTRUMENTS[id].name)
        .flatMap(({ dataPoints }) => dataPoints as readonly { attributes: object; value: unknown }[])
        .map(({ attributes, value }) => ({
          attributes: attributes as Series['attributes'],
          value: typeof value === 'number' ? value : (value as { count: number }).count,
        }))
    },
    close: () => provider.shutdown(),
  }
}

function prometheus(): Reader {
  const registry = new promClient.Registry()
  return {
    options: { prometheus: promClient, registry },
    async read(id) {
      const name = prometheusName(INSTRUMENTS[id])
      const metric = await registry.getSingleMetric(name)!.get()
      const values = metric.values as readonly { value: number; labels: object; metricName?: string }[]
      const isHistogram = INSTRUMENTS[id].kind === 'histogram'
      return values
        .filter(({ metricName }) => !isHistogram || metricName === `${name}_count`)
        .map(({ labels, value }) => ({ attributes: labels as Series['attributes'], value }))
    },
    close: async () => registry.clear(),
  }
}

export function sum(series: readonly Series[], where: Series['attributes'] = {}): number {
  return series
    .filter(({ attributes }) => Object.entries(where).every(([name, value]) => attributes[name] === value))
    .reduce((total, { value }) => total + value, 0)
}
