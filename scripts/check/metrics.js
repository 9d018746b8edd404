// Compares docs/metrics.md with the table of instruments (--write prints the table into it); promtool checks the alerts and runs
// their tests. Needs the build.
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const PAGE = 'docs/metrics.md'
const BETWEEN = /(?<=<!-- instruments -->\n)[^]*(?=<!-- end -->)/

/** @type {string[]} */
const wrong = []
const page = readFileSync(PAGE, 'utf8')
const printed = page.replace(BETWEEN, () => `\n${table()}\n\n`)
if (process.argv.includes('--write')) writeFileSync(PAGE, printed)
else if (printed !== page)
  wrong.push(`${PAGE} does not hold the table of instruments: npm run check -- metrics --write`)
for (const [command = '', file = ''] of [
  ['check', 'alerts.yml'],
  ['test', 'test/alerts.test.yml'],
]) {
  const args = [command, 'rules', `packages/metrics/${file}`]
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
  if (status !== 0) wrong.push(`promtool ${args.join(' ')}: ${stdout}${stderr}`)
}
for (const what of wrong) console.error(what)
console.log(`${Object.keys(INSTRUMENTS).length} instruments, ${wrong.length} faults`)
process.exitCode = wrong.length > 0 ? 1 : 0

function table() {
  const rows = Object.values(INSTRUMENTS).map((instrument) => {
    const { name, kind, unit, attributes, meaning } = instrument
    const names = `\`${name}\`<br>\`${prometheusName(instrument)}\``
    return `| ${names} | ${kind}, ${unit} | ${attributes.map((each) => `\`${each}\``).join(', ')} | ${meaning} |`
  })
  return ['| instrument | kind, unit | attributes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}
