import { freePort, removeFolder, ServerProcess, until } from '@sluice/harness/redis'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const ROOT = resolve(__dirname, '../..')
const ALERTS = join(ROOT, 'packages/metrics/alerts.yml')
const PANELS = join(ROOT, 'packages/metrics/grafana/sluice.json')

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Prometheus {
  /** The labels and the value of each series of an expression now. */
  query(expression: string): Promise<readonly Sample[]>
  stop(): Promise<void>
}

/**
 * Starts a Prometheus that scrapes the service at `target` (host and port) twice a second and evaluates the published alerts, a minute of
 * which is a second here. Debian's is installed if there is none.
 */
export async function startPrometheus(target: string): Promise<Prometheus> {
  const ensured = spawnSync(process.execPath, ['scripts/ensure.js', 'prometheus'], { cwd: ROOT })
  if (ensured.status !== 0) throw new Error(String(ensured.stdout))
  const folder = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'))
  writeFileSync(join(folder, 'alerts.yml'), scaled(readFileSync(ALERTS, 'utf8')))
  const every = { scrape_interval: '500ms', evaluation_interval: '500ms' }
  const scraped = [{ job_name: 'service', static_configs: [{ targets: [target] }] }]
  const config = { global: every, rule_files: ['alerts.yml'], scrape_configs: scraped }
  writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config)) // JSON is YAML
  const address = `127.0.0.1:${await freePort()}`
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${address}`]
  const server = new ServerProcess('prometheus', [...args, '--log.level=error'], folder)
  const stop = async (): Promise<void> => {
    await server.stop()
    removeFolder(folder)
  }
  try {
    await until('Prometheus to start', async () => (await fetch(`http://${address}/-/ready`)).ok)
  } catch (error) {
    await stop()
    throw error
  }
  return { query: (expression) => query(`http://${address}`, expression), stop }
}

async function query(origin: string, expression: string): Promise<readonly Sample[]> {
  const response = await fetch(`${origin}/api/v1/query?query=${encodeURIComponent(expression)}`)
  const { data, error } = (await response.json()) as { data?: { result: Raw[] }; error?: string }
  if (!data) throw new Error(`${expression}: ${error}`)
  return data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }))
}

interface Raw {
  readonly metric: Record<string, string>
  readonly value: readonly [number, string]
}

function scaled(rules: string): string {
  return rules.replaceAll(/(\d+)m\]/g, '$1s]').replaceAll(/for: (\d+)m/g, 'for: $1s')
}

/** Every expression of the dashboard and the alerts, without the comparison that makes an alert of it. */
export function publishedExpressions(): readonly string[] {
  const { panels } = JSON.parse(readFileSync(PANELS, 'utf8')) as { panels: { targets: { expr: string }[] }[] }
  const ofPanels = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  const rules = scaled(readFileSync(ALERTS, 'utf8'))
  const ofAlerts = [...rules.matchAll(/expr: (.+?) (?:==|>) [\d.]+$/gm)].map(([, expr = '']) => expr)
  return [...ofPanels, ...ofAlerts].map((expr) =>
    expr.replaceAll('$__rate_interval', '30s').replaceAll('$__range', '60s'),
  )
}
