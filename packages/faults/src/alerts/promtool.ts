import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Recording, SPACED_S } from './recording.js'

const ALERTS = resolve('packages/metrics/alerts.yml')

/**
 * The objection of promtool to these alerts having fired, and no others, at some moment of a recording. Undefined if nothing.
 */
export function contradiction(recording: Recording, alerts: readonly string[]): string | undefined {
  const { scrapes, series } = recording.stop()
  const lasted = scrapes * SPACED_S
  const firing = 'ALERTS{alertstate="firing"}'
  const test = {
    rule_files: [ALERTS],
    evaluation_interval: `${SPACED_S}s`,
    tests: [
      {
        interval: `${SPACED_S}s`,
        input_series: [...series].map(([name, values]) => ({ series: name, values })),
        promql_expr_test: [
          {
            expr: `group by (alertname) (last_over_time(${firing}[${lasted}s]))`,
            eval_time: `${lasted}s`,
            exp_samples: alerts.map((name) => ({ labels: `{alertname="${name}"}`, value: 1 })),
          },
        ],
      },
    ],
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-alerts-'))
  try {
    const file = join(folder, 'recorded.test.yml') // JSON is YAML
    writeFileSync(file, JSON.stringify(test))
    const { status, stdout, stderr, error } = spawnSync('promtool', ['test', 'rules', file], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    if (error) throw error
    return status === 0 ? undefined : `${stdout}${stderr}`
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
