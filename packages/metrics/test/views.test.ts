import {
  AggregationTemporality,
  createAllowListAttributesProcessor,
  createDenyListAttributesProcessor,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ViewOptions,
} from '@opentelemetry/sdk-metrics'
import { createLimiter, createSemaphore, fixedWindow, memoryStore } from '@sluice/core'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { observe } from '../src/index.js'

/*
 * The SDK folds series together where a View drops attributes, and where there are more than it takes. What is counted then adds up
 * to the calls all the same.
 */

const PAGE = readFileSync(resolve(__dirname, '../../../docs/metrics.md'), 'utf8')

type Point = { readonly attributes: object; readonly value: number }

function open(views: ViewOptions[], temporality: AggregationTemporality) {
  const exporters = [temporality, AggregationTemporality.CUMULATIVE].map(
    (each) => new InMemoryMetricExporter(each),
  )
  const readers = exporters.map(
    (exporter) => new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 1e8 }),
  )
  const provider = new MeterProvider({ readers, views })
  /** The points of an instrument in every export so far, of the first exporter. */
  const exported = (name: string): readonly (readonly Point[])[] =>
    exporters[0]!.getMetrics().map(({ scopeMetrics }) =>
      scopeMetrics
        .flatMap(({ metrics }) => metrics)
        .filter(({ descriptor }) => descriptor.name === name)
        .flatMap(({ dataPoints }) => dataPoints as unknown as readonly Point[]),
    )
  return { provider, meter: provider.getMeter('test'), exported }
}

const total = (points: readonly Point[]): number => points.reduce((sum, { value }) => sum + value, 0)

const VIEWS: Readonly<Record<string, ViewOptions[]>> = {
  'no View': [],
  'a View that keeps `result`': [
    { instrumentName: 'sluice.*', attributesProcessors: [createAllowListAttributesProcessor(['result'])] },
  ],
  'a View that drops `policy`': [
    { instrumentName: 'sluice.*', attributesProcessors: [createDenyListAttributesProcessor(['policy'])] },
  ],
  'a View that drops all': [
    { instrumentName: 'sluice.*', attributesProcessors: [createAllowListAttributesProcessor([])] },
  ],
  'a View with `aggregationCardinalityLimit`': [
    { instrumentName: 'sluice.*', aggregationCardinalityLimit: 3 },
  ],
}

describe.each([
  ['cumulative', AggregationTemporality.CUMULATIVE],
  ['delta', AggregationTemporality.DELTA],
])('the sums of all points are the calls, %s', (_, temporality) => {
  it.each(Object.entries(VIEWS))('under %s', async (name, views) => {
    const { provider, meter, exported } = open(views, temporality)
    const store = memoryStore({ clock: () => 0 })
    const limiters = Array.from({ length: 4 }, (_, i) => {
      const policies = [fixedWindow({ limit: 2 + i, window: '1h' })]
      return createLimiter({ name: `l${i}`, policies, store })
    })
    const semaphores = ['a', 'b', 'c', 'd', 'e'].map((each) => createSemaphore({ name: each, limit: 9 }))
    for (const each of [...limiters, ...semaphores]) observe(each, { meter })
    const permits = []
    let calls = 0
    for (let round = 0; round < 3; round++) {
      for (const limiter of limiters) for (let i = 0; i < 5; i++, calls++) await limiter.consume('k')
      for (const semaphore of semaphores) permits.push(await semaphore.acquire())
      await provider.forceFlush()
    }
    const rounds = exported('sluice.decisions')
    const isDelta = temporality === AggregationTemporality.DELTA
    expect(isDelta ? total(rounds.flat()) : total(rounds.at(-1)!)).toBe(calls)
    const denied = (isDelta ? rounds.flat() : rounds.at(-1)!).filter(
      ({ attributes }) => (attributes as { result?: string }).result === 'denied',
    )
    // All that pass are 2 + 3 + 4 + 5.
    if (/`(?:result|policy)`/.test(name) || name === 'no View') expect(total(denied)).toBe(calls - 14)
    const held = () => {
      const exports = exported('sluice.semaphore.in_use')
      return isDelta ? total(exports.flat()) : total(exports.at(-1)!)
    }
    expect(held()).toBe(permits.length)
    await permits.pop()!.release()
    await provider.forceFlush()
    expect(held()).toBe(permits.length)
    await provider.shutdown()
    for (const each of [...limiters, ...semaphores]) await each.close()
  })

  it('beyond the 2,000 sets of attributes that the SDK takes, of which the others are `otel.metric.overflow`', async () => {
    const { provider, meter, exported } = open([], temporality)
    const store = memoryStore({ clock: () => 0 })
    const limiters = Array.from({ length: 120 }, (_, i) => {
      const policies = [fixedWindow({ limit: 2, window: '1h' })]
      return createLimiter({ name: `l${i}`, policies, store })
    })
    for (const limiter of limiters) observe(limiter, { meter })
    let calls = 0
    const lists = Array.from({ length: 30 }, (_, i) => [
      fixedWindow({ name: `p${i}`, limit: 9, window: '1h' }),
    ])
    for (const limiter of limiters) {
      for (const policies of lists)
        for (const key of ['a', 'b']) calls += (await limiter.consume(key, { policies })) ? 1 : 0
      if (calls === 1200) await provider.forceFlush()
    }
    await provider.forceFlush()
    const rounds = exported('sluice.decisions')
    const isDelta = temporality === AggregationTemporality.DELTA
    const points = isDelta ? rounds.flat() : rounds.at(-1)!
    expect(calls).toBe(7200)
    expect(total(points)).toBe(calls)
    expect(points.some(({ attributes }) => 'otel.metric.overflow' in attributes)).toBe(true)
    await provider.shutdown()
    await Promise.all(limiters.map((limiter) => limiter.close()))
  })
})

it('docs/metrics.md names these Views', () => {
  for (const [view] of Object.entries(VIEWS)) {
    for (const [named] of view.matchAll(/`[^`]+`/g)) expect(PAGE).toContain(named)
  }
  expect(PAGE).toContain('`otel.metric.overflow`')
})
