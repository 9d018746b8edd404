import type { InstrumentId } from '../instruments.js'

export type Attributes = Readonly<Record<string, string>>

/** Takes one value of an instrument while it is read. */
export type Observe = (value: number, attributes: Attributes) => void

/** Records one value of a histogram, in seconds. */
export type RecordDuration = (seconds: number, attributes: Attributes) => void

/** Reports what it counts each time that it is read. */
export interface Source {
  read(instrument: InstrumentId, observe: Observe): void
  /** Whether it has ended for good and counted nothing that must still be reported. */
  readonly isOver: boolean
}

/** Where values go: a meter of OpenTelemetry, or a registry of prom-client. */
export interface Sink {
  readonly storeDuration: RecordDuration
  readonly acquireDuration: RecordDuration
  /** The sources that are read when values are collected, by an identity that a source shares with its successors. */
  readonly sources: Map<string, Source>
  /** The objects that are observed, each with the function that ends it. */
  readonly observed: WeakMap<object, () => void>
  /** Registers the metrics again, because a registry that was cleared has forgotten them. */
  readonly register?: () => void
}

/**
 * Reports the values of one instrument from all sources to `observe`. Called whenever the instrument is collected. A
 * source that has ended for good is removed.
 */
export function readAll(sources: Map<string, Source>, instrument: InstrumentId, observe: Observe): void {
  for (const [id, source] of sources) {
    if (source.isOver) sources.delete(id)
    else source.read(instrument, observe)
  }
}
