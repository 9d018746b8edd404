import type { Limiter } from '@sluice/core'
import { observe } from '@sluice/metrics'
import type { WatchedPolicies } from '@sluice/policies/node'
import * as promClient from 'prom-client'

/** Between two scrapes, in milliseconds. */
const EVERY_MS = 50
/** Seconds between two scrapes, as promtool assumes them: alerts wait for minutes, and rows last seconds. */
export const SPACED_S = 30
const FASTER = (SPACED_S * 1000) / EVERY_MS

/** The metrics that Prometheus would have scraped of limiters: all series of a registry, scraped while something happens to them. */
export class Recording {
  readonly #registry = new promClient.Registry()
  readonly #series = new Map<string, number[]>()
  readonly #began = performance.now()
  readonly #timer: ReturnType<typeof setInterval>
  #scrapes = 0

  constructor() {
    this.#timer = setInterval(() => void this.#scrape(), EVERY_MS)
  }

  readonly watch = (limiter: Limiter): void => {
    observe(limiter, { prometheus: promClient, registry: this.#registry })
  }

  /** As `watch`. The age of a file is as much older as time is taken to be longer. */
  readonly watchPolicies = (watched: WatchedPolicies): void => {
    const aged = new Proxy(watched, {
      get: (_, name) => (name === 'ageMs' ? watched.ageMs * FASTER : Reflect.get(watched, name)),
    })
    observe(aged, { prometheus: promClient, registry: this.#registry, name: 'policies' })
  }

  /**
   * Ends it. The values of each series, one for each scrape that was due, as promtool reads them: `_` where there is none, as
   * the series was not there yet or the process was busy.
   */
  stop(): { readonly scrapes: number; readonly series: ReadonlyMap<string, string> } {
    clearInterval(this.#timer)
    const scrapes = this.#scrapes
    const series = new Map<string, string>()
    for (const [name, values] of this.#series) {
      series.set(name, Array.from({ length: scrapes }, (_, i) => values[i] ?? '_').join(' '))
    }
    return { scrapes, series }
  }

  /** Reads all metrics as Prometheus would, and notes their values at the place of this moment in each series. */
  async #scrape(): Promise<void> {
    const index = Math.floor((performance.now() - this.#began) / EVERY_MS)
    this.#scrapes = index + 1
    for (const { name, values } of await this.#registry.getMetricsAsJSON()) {
      for (const { labels, value, ...more } of values) {
        const { metricName = name } = more as { readonly metricName?: string }
        const pairs = Object.entries(labels).map(
          ([label, text]) => `${label}=${JSON.stringify(String(text))}`,
        )
        const id = `${metricName}{${pairs.join()}}`
        const recorded = this.#series.get(id) ?? []
        recorded[index] = value
        this.#series.set(id, recorded)
      }
    }
  }
}
