import { PolicyError } from '@sluice/core'
import { type MeterLike, openTelemetrySink } from './open-telemetry.js'
import { type PromClientLike, prometheusSink, type RegistryLike } from './prometheus.js'
import type { Sink } from './sink.js'

interface SinkOptions {
  readonly meter?: MeterLike
  readonly prometheus?: PromClientLike
  readonly registry?: RegistryLike
}

/** The sink of a meter or registry, which registers its instruments once. @throws {PolicyError} INVALID_OPTION. */
export function sinkOf(options: SinkOptions): Sink {
  const { meter, prometheus, registry } = options ?? {}
  if ((meter === undefined) === (prometheus === undefined)) {
    throw new PolicyError('INVALID_OPTION', 'either a meter or prometheus is required, and not both')
  }
  if (meter !== undefined) return sinkIn(meter, () => openTelemetrySink(meter))
  const own = registry ?? prometheus!.register
  const sink = sinkIn(own, () => prometheusSink(prometheus!, own))
  sink.register?.()
  return sink
}

function sinkIn(owner: object, make: () => Sink): Sink {
  const known = owner && SINKS.get(owner)
  if (known) return known
  const sink = make()
  SINKS.set(owner, sink)
  return sink
}

/** Under a registered symbol: two copies of this package would register the same names twice. */
const SINKS_OF_ALL_COPIES = Symbol.for('sluice.metrics.sinks.1')
const shared = globalThis as unknown as Record<symbol, WeakMap<object, Sink> | undefined>
const SINKS = (shared[SINKS_OF_ALL_COPIES] ??= new WeakMap<object, Sink>())
