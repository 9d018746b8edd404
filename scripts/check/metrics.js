// Compares docs/metrics.md with the table of instruments, and alerts and dashboards with what is made of it for each way in which
// metrics arrive (--write writes them all); promtool checks the alerts and runs their tests. Needs the build.
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { format, resolveConfig } from 'prettier'
import { alertsOf } from './metrics/alerts.js'
import { dashboardOf } from './metrics/dashboard.js'
import { WAYS } from './metrics/ways.js'
import { writeOrCompare } from './written.js'

const PAGE = 'docs/metrics.md'
const BETWEEN = /(?<=<!-- instruments -->\n)[^]*(?=<!-- end -->)/

const page = readFileSync(PAGE, 'utf8')
const printed = page.replace(BETWEEN, () => `\n${table()}\n\n`)
const made = WAYS.flatMap((way) => [
  [`packages/metrics/alerts${way.suffix}.yml`, alertsOf(way)],
  [`packages/metrics/grafana/sluice${way.suffix}.json`, dashboardOf(way)],
])
const files = await Promise.all(made.map(async ([path = '', text = '']) => formatted(path, text)))
writeOrCompare('metrics', [[PAGE, printed], ...files])
const rules = WAYS.map(({ suffix }) => ['check', `alerts${suffix}.yml`])
for (const [command = '', file = ''] of [...rules, ['test', 'test/alerts.test.yml']]) {
  const args = [command, 'rules', `packages/metrics/${file}`]
  if (spawnSync('promtool', args, { stdio: 'inherit' }).status !== 0) process.exitCode = 1
}
console.log(`${Object.keys(INSTRUMENTS).length} instruments, ${WAYS.length} ways to Prometheus`)

/**
 * A file as `npm run format` leaves it.
 * @param {string} path
 * @param {string} text
 * @returns {Promise<readonly [path: string, text: string]>}
 */
async function formatted(path, text) {
  return [path, await format(text, { ...(await resolveConfig(path)), filepath: path })]
}

function table() {
  const rows = Object.values(INSTRUMENTS).map((instrument) => {
    const { name, kind, unit, attributes, meaning } = instrument
    const names = `\`${name}\`<br>\`${prometheusName(instrument)}\``
    return `| ${names} | ${kind}, ${unit} | ${attributes.map((each) => `\`${each}\``).join(', ')} | ${meaning} |`
  })
  return ['| instrument | kind, unit | attributes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}
