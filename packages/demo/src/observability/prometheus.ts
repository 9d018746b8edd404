import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, removeFolder, ServerProcess, until } from '@sluice/harness/redis'
import { CannotRun } from '../demo.js'

const ROOT = new URL('../../../../', import.meta.url)
const ALERTS = new URL('packages/metrics/alerts.yml', ROOT)
const PANELS = new URL('packages/metrics/grafana/sluice.json', ROOT)
const ENSURE = fileURLToPath(new URL('scripts/ensure.js', ROOT))

/** A minute of the alerts is a second here: they are given hours to wait in a service, and half a minute in a demo. */
const scaled = (rules: string): string =>
  rules.replaceAll(/(\d+)m\]/g, '$1s]').replaceAll(/for: (\d+)m/g, 'for: $1s')

/** A real Prometheus that scrapes one service twice a second. */
export class Prometheus {
  readonly origin: string
  readonly #stop: () => Promise<void>

  private constructor(origin: string, stop: () => Promise<void>) {
    this.origin = origin
    this.#stop = stop
  }

  /**
   * Starts a Prometheus that scrapes the service at `target` (host and port) and evaluates the published alerts. Debian's is installed
   * if there is none.
   * @throws {CannotRun} if it cannot be installed, or does not start.
   */
  static async start(target: string): Promise<Prometheus> {
    const { status } = spawnSync(process.execPath, [ENSURE, 'prometheus'], { stdio: 'inherit' })
    if (status !== 0) throw new CannotRun('Without a prometheus there is nothing to show.')
    const folder = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'))
    writeFileSync(join(folder, 'alerts.yml'), scaled(readFileSync(ALERTS, 'utf8')))
    writeFileSync(join(folder, 'prometheus.yml'), configuration(target))
    const address = `127.0.0.1:${await freePort()}`
    const args = [
      '--config.file=prometheus.yml',
      '--storage.tsdb.path=data',
      `--web.listen-address=${address}`,
    ]
    const server = new ServerProcess('prometheus', [...args, '--log.level=error'], folder)
    const prometheus = new Prometheus(`http://${address}`, async () => {
      await server.stop()
      removeFolder(folder)
    })
    await prometheus.#reach()
    return prometheus
  }

  /** Ends the server and removes its folder. */
  stop(): Promise<void> {
    return this.#stop()
  }

  /** Asks Prometheus for an expression. Returns the labels and the value of each of its series now. */
  async query(expression: string): Promise<readonly Sample[]> {
    const response = await fetch(`${this.origin}/api/v1/query?query=${encodeURIComponent(expression)}`)
    const { data, error } = (await response.json()) as { data?: { result: RawSample[] }; error?: string }
    if (!data) throw new Error(`${expression}: ${error}`)
    return data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }))
  }

  /** The names of the alerts that fired at some moment of the last `seconds`. */
  async fired(seconds: number): Promise<readonly string[]> {
    const firing = `ALERTS{alertstate="firing"}`
    const series = await this.query(`count by (alertname) (last_over_time(${firing}[${seconds}s]))`)
    return series.map(({ labels }) => labels['alertname'] ?? '').toSorted()
  }

  /** Waits until the service was scraped once more from now on. */
  async nextScrape(): Promise<void> {
    const now = Date.now() / 1000
    const isScraped = async () => (await this.query('max(timestamp(up))')).some(({ value }) => value >= now)
    await until('Prometheus to scrape', isScraped, PATIENCE_MS)
  }

  /**
   * Waits until the server answers.
   * @throws {CannotRun} if it has not after 15 s; it is ended then.
   */
  async #reach(): Promise<void> {
    const isReady = async () => (await fetch(`${this.origin}/-/ready`)).ok
    try {
      await until('Prometheus to start', isReady, PATIENCE_MS)
    } catch {
      await this.stop()
      throw new CannotRun('Prometheus does not start.')
    }
  }
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

interface RawSample {
  readonly metric: Record<string, string>
  readonly value: readonly [number, string]
}

/** Every expression of the dashboard and the alerts, without the comparison that makes an alert of it. */
export function publishedExpressions(): readonly string[] {
  const { panels } = JSON.parse(readFileSync(PANELS, 'utf8')) as { panels: { targets: { expr: string }[] }[] }
  const ofPanels = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  const rules = scaled(readFileSync(ALERTS, 'utf8'))
  const ofAlerts = [...rules.matchAll(/expr: (.+?) (?:==|>) [\d.]+$/gm)].map(
    ([, expression = '']) => expression,
  )
  return [...ofPanels, ...ofAlerts].map((expression) =>
    expression.replaceAll('$__rate_interval', '30s').replaceAll('$__range', '60s'),
  )
}

/** The text of prometheus.yml: the service at `target` is scraped, and the alerts are evaluated, each half second. */
function configuration(target: string): string {
  return `global: { scrape_interval: 500ms, evaluation_interval: 500ms }
rule_files: [alerts.yml]
scrape_configs:
  - job_name: service
    static_configs: [{ targets: ['${target}'] }]
`
}

const PATIENCE_MS = 15_000
