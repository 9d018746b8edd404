// Compares docs/metrics.md with the table of instruments (--write prints the table into it); promtool checks the alerts and runs
// their tests. Needs the build.
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeOrCompare } from './written.js'

const PAGE = 'docs/metrics.md'
const BETWEEN = /(?<=<!-- instruments -->\n)[^]*(?=<!-- end -->)/

const page = readFileSync(PAGE, 'utf8')
const printed = page.replace(BETWEEN, () => `\n${table()}\n\n`)
writeOrCompare('metrics', [[PAGE, printed]])
for (const [command = '', file = ''] of [
  ['check', 'alerts.yml'],
  ['test', 'test/alerts.test.yml'],
]) {
  const args = [command, 'rules', `packages/metrics/${file}`]
  if (spawnSync('promtool', args, { stdio: 'inherit' }).status !== 0) process.exitCode = 1
}
console.log(`${Object.keys(INSTRUMENTS).length} instruments`)

function table() {
  const rows = Object.values(INSTRUMENTS).map((instrument) => {
    const { name, kind, unit, attributes, meaning } = instrument
    const names = `\`${name}\`<br>\`${prometheusName(instrument)}\``
    return `| ${names} | ${kind}, ${unit} | ${attributes.map((each) => `\`${each}\``).join(', ')} | ${meaning} |`
  })
  return ['| instrument | kind, unit | attributes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}
