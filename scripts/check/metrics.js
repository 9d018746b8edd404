// Compares what is written of the metrics with what is there: docs/metrics.md with the table of instruments (--write prints
// the table into it), docs/runbook.md with the alerts, and each expression of panels and alerts with the names and attributes of
// instruments. promtool checks the alerts and runs their tests. Needs the build.
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

const FOLDER = 'packages/metrics'
const PAGE = 'docs/metrics.md'
const RUNBOOK = 'docs/runbook.md'
const BETWEEN = /(?<=<!-- instruments -->\n)[^]*(?=<!-- end -->)/

/** @typedef {{ title: string, targets?: { expr: string }[] }} Panel */

/** @type {string[]} */
const wrong = []
const alerts = readFileSync(`${FOLDER}/alerts.yml`, 'utf8')
comparePage()
compareRunbook()
compareExpressions()
for (const args of [
  ['check', 'rules', `${FOLDER}/alerts.yml`],
  ['test', 'rules', `${FOLDER}/test/alerts.test.yml`],
]) {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
  if (status !== 0) wrong.push(`promtool ${args.join(' ')}: ${stdout}${stderr}`)
}
for (const what of wrong) console.error(what)
console.log(
  `${Object.keys(INSTRUMENTS).length} instruments, ${alertNames().length} alerts, ${wrong.length} faults`,
)
process.exitCode = wrong.length > 0 ? 1 : 0

function comparePage() {
  const page = readFileSync(PAGE, 'utf8')
  const printed = page.replace(BETWEEN, () => `\n${table()}\n\n`)
  if (printed === page) return
  if (process.argv.includes('--write')) writeFileSync(PAGE, printed)
  else wrong.push(`${PAGE} does not hold the table of instruments: npm run check -- metrics --write`)
}

function table() {
  const rows = Object.values(INSTRUMENTS).map((instrument) => {
    const { name, kind, unit, attributes, meaning } = instrument
    const names = `\`${name}\`<br>\`${prometheusName(instrument)}\``
    return `| ${names} | ${kind}, ${unit} | ${attributes.map((each) => `\`${each}\``).join(', ')} | ${meaning} |`
  })
  return ['| instrument | kind, unit | attributes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

function compareRunbook() {
  const headings = [...readFileSync(RUNBOOK, 'utf8').matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
  if (headings.join() !== alertNames().join()) {
    wrong.push(`${RUNBOOK} has the headings ${headings.join()}, and the alerts are ${alertNames().join()}`)
  }
}

/** Each metric has to be one of an instrument, and each label one of its attributes. */
function compareExpressions() {
  const attributesOf = new Map(
    Object.values(INSTRUMENTS).map((instrument) => [
      prometheusName(instrument),
      /** @type {readonly string[]} */ (instrument.attributes),
    ]),
  )
  for (const expression of [...alertExpressions(), ...panelExpressions()]) {
    const metrics = [...expression.matchAll(/\b(sluice_\w+?)(?:_bucket|_count|_sum)?\b(?:\{([^}]*)\})?/g)]
    if (metrics.length === 0) wrong.push(`no metric of ours: ${expression}`)
    for (const [, name = '', labels = ''] of metrics) {
      const attributes = attributesOf.get(name)
      if (!attributes) wrong.push(`there is no ${name}: ${expression}`)
      for (const [, label = ''] of labels.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) {
        if (!attributes?.includes(label)) wrong.push(`${name} has no ${label}: ${expression}`)
      }
    }
  }
}

function alertNames() {
  return [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
}

function alertExpressions() {
  return [...alerts.matchAll(/expr: (.+)/g)].map(([, expression = '']) => expression)
}

function panelExpressions() {
  return readdirSync(`${FOLDER}/grafana`).flatMap((file) => {
    /** @type {{ panels: Panel[] }} */
    const { panels } = JSON.parse(readFileSync(`${FOLDER}/grafana/${file}`, 'utf8'))
    return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
  })
}
