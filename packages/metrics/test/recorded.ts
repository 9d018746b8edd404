import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as promClient from 'prom-client'
import type { ObserveOptions } from '../src/index.js'

/*
 * What Prometheus would have scraped of real exporters, and what promtool says of it. A scrape is a step of the test and not an
 * instant: promtool takes them to be 30 s apart.
 */

export type Labels = Readonly<Record<string, string>>

/** A process whose metrics are scraped. */
export interface Exporter {
  readonly options: ObserveOptions
  /** The text that Prometheus gets. */
  scrape(): Promise<string>
  close(): Promise<unknown>
}

/** An exporter, the files that are for it, and the labels that a target gets. */
export interface Way {
  readonly suffix: string
  open(): Exporter
  labelsOf(service: string, process: string): Labels
}

const SCRAPED = (service: string, process: string): Labels => {
  const [namespace = '', job = ''] = service.split('/')
  return { namespace, job, instance: process }
}

export const WAYS: Readonly<Record<string, Way>> = {
  'prom-client': { suffix: '', open: openPromClient, labelsOf: SCRAPED },
  '@opentelemetry/exporter-prometheus': {
    suffix: '.exporter-prometheus',
    open: openExporter,
    labelsOf: SCRAPED,
  },
  // Not run: the names and labels are those of its specification, and the values those of prom-client.
  'a collector without honor_labels': {
    suffix: '.collector',
    open: openPromClient,
    labelsOf: (service, process) => ({
      namespace: 'observability',
      job: 'otel-collector',
      instance: '10.0.0.9:8889',
      exported_job: service,
      exported_instance: process,
    }),
  },
  'a collector by remote write': {
    suffix: '.collector',
    open: openPromClient,
    labelsOf: (service, process) => ({ job: service, instance: process }),
  },
  'a collector with resource attributes as labels, and pods without service.instance.id': {
    suffix: '.collector',
    open: openPromClient,
    labelsOf: (service, process) => ({ job: service, instance: '', k8s_pod_name: process }),
  },
}

function openPromClient(): Exporter {
  const registry = new promClient.Registry()
  return {
    options: { prometheus: promClient, registry },
    scrape: () => registry.metrics(),
    close: async () => registry.clear(),
  }
}

function openExporter(): Exporter {
  const exporter = new PrometheusExporter({ preventServerStart: true })
  const provider = new MeterProvider({ readers: [exporter] })
  return {
    options: { meter: provider.getMeter('sluice') },
    scrape: () =>
      new Promise((end) => {
        const response = { setHeader() {}, end }
        exporter.getMetricsRequestHandler({} as never, response as never)
      }),
    close: () => provider.shutdown(),
  }
}

/** The series of several targets over all scrapes so far. */
export class Recorded {
  readonly #series = new Map<string, (string | undefined)[]>()
  #scrapes = 0

  /** Reads each of these targets once, at the same instant. */
  async scrape(targets: readonly { readonly exporter: Exporter; readonly labels: Labels }[]): Promise<void> {
    for (const { exporter, labels } of targets) {
      for (const line of (await exporter.scrape()).split('\n')) {
        const [, name, own = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? []
        if (!name?.startsWith('sluice_')) continue
        const target = Object.entries(labels).map(([label, text]) => `${label}="${text}"`)
        const id = `${name}{${[own, ...target].filter(Boolean).join()}}`
        const values = this.#series.get(id) ?? []
        values[this.#scrapes] = value
        this.#series.set(id, values)
      }
    }
    this.#scrapes++
  }

  /** The alerts that fire at the end, each with its labels, by the rules of a way. */
  firing(rules: string): readonly Labels[] {
    return this.#samples(rules, ['ALERTS{alertstate="firing"}'])[0]!
  }

  /** Those of the expressions that have no series at the end. */
  silent(rules: string, expressions: readonly string[]): readonly string[] {
    const samples = this.#samples(rules, expressions)
    return expressions.filter((_, i) => samples[i]!.length === 0)
  }

  /** The samples of each expression at the end: promtool names those that it did not expect. */
  #samples(rules: string, expressions: readonly string[]): readonly (readonly Labels[])[] {
    const last = this.#scrapes - 1
    const at = `${last * 30}s`
    const expected = { labels: '{none="none"}', value: 0 }
    const series = [...this.#series].map(([id, values]) => {
      const all = Array.from({ length: this.#scrapes }, (_, i) => {
        // A target that has gone is marked as stale, once.
        const isGone = values[i] === undefined && values[i - 1] !== undefined
        return values[i] ?? (isGone ? 'stale' : '_')
      })
      return { series: id, values: all.join(' ') }
    })
    const test = { interval: '30s', input_series: series }
    const questions = expressions.map((expr) => ({ expr, eval_time: at, exp_samples: [expected] }))
    const folder = mkdtempSync(join(tmpdir(), 'sluice-alerts-'))
    try {
      const file = join(folder, 'recorded.test.yml') // JSON is YAML
      const tests = [{ ...test, promql_expr_test: questions }]
      const rule_files = [resolve(__dirname, '..', rules)]
      writeFileSync(file, JSON.stringify({ rule_files, evaluation_interval: '30s', tests }))
      const { stdout, stderr, error } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' })
      if (error) throw error
      return samplesIn(`${stdout}${stderr}`, expressions.length)
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
}

/** The samples that promtool has got, which it prints as `got: {a="b"} 1E+00, {a="c"} 2E+00`, or nil. */
function samplesIn(text: string, expressions: number): readonly (readonly Labels[])[] {
  const all = [...text.matchAll(/got:\s*(.*)/g)].map(([, got = '']) =>
    [...got.matchAll(/\{([^}]*)\}/g)].map(([, labels = '']) => {
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)]
      return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value]))
    }),
  )
  if (all.length !== expressions) throw new Error(`promtool: ${text}`)
  return all
}
