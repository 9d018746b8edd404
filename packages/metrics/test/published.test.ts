import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'
import { REASONS } from '../src/sources/policy-counts.js'

const folder = resolve(__dirname, '..')
const read = (path: string) => readFileSync(resolve(folder, path), 'utf8')

const alerts = read('alerts.yml')
const alertNames = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)

/** The expressions of alerts and dashboard for one way to Prometheus, with the names that it gives to instruments. */
function published(suffix: string, hasUnits: boolean) {
  const ofAlerts = [...read(`alerts${suffix}.yml`).matchAll(/expr: (.+)/g)].map(
    ([, expression = '']) => expression,
  )
  const { panels, annotations } = JSON.parse(read(`grafana/sluice${suffix}.json`)) as {
    panels: { targets: { expr: string }[] }[]
    annotations: { list: { expr: string }[] }
  }
  const ofPanels = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
  const expressions = [...ofAlerts, ...ofPanels, ...annotations.list.map(({ expr }) => expr)]
  const names = Object.values(INSTRUMENTS).map((each) => {
    const instrument = hasUnits ? each : { ...each, unit: '' }
    return [prometheusName(instrument), instrument.attributes] as const
  })
  return { expressions, attributesOf: new Map<string, readonly string[]>(names) }
}

const WAYS = [published('', true), published('.exporter-prometheus', false), published('.collector', true)]
const CASES = WAYS.flatMap(({ expressions, attributesOf }) =>
  expressions.map((expression) => [expression, attributesOf] as const),
)

/** The metrics and labels of an expression that no instrument has. */
function unknownIn(expression: string, attributesOf: ReadonlyMap<string, readonly string[]>): string[] {
  const metrics = [...expression.matchAll(/\b(sluice_\w+?)(?:_bucket|_count|_sum)?\b(?:\{([^}]*)\})?/g)]
  if (metrics.length === 0) return ['no metric of ours']
  return metrics.flatMap(([, name = '', labels = '']) => {
    const attributes = attributesOf.get(name)
    if (!attributes) return [`there is no ${name}`]
    const named = [...labels.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label)
    return named.filter((label) => !attributes.includes(label)).map((label) => `${name} has no ${label}`)
  })
}

describe('what is published of the metrics', () => {
  it('has a section of docs/runbook.md for each alert, in their order', () => {
    const headings = [...read('../../docs/runbook.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name)
    expect(alertNames.length).toBeGreaterThan(0)
    expect(headings).toEqual(alertNames)
  })

  it.each(CASES)('asks only for what instruments have: %s', (expression, attributesOf) => {
    expect(unknownIn(expression, attributesOf)).toEqual([])
  })

  it.each([
    ['rate(http_requests_total[5m])', 'no metric of ours'],
    ['sluice_nothing_total > 0', 'there is no sluice_nothing_total'],
    ['sluice_limit{colour="red"}', 'sluice_limit has no colour'],
  ])('would not ask for %s', (expression, why) => {
    expect(unknownIn(expression, WAYS[0]!.attributesOf)).toEqual([why])
  })
})

it('the docs name all reasons of denials', () => {
  const [, list = ''] = /^Reasons are ([^.]+)\./m.exec(read('../../docs/metrics.md')) ?? []
  const named = [...list.matchAll(/`(\w+)`/g)].map(([, name]) => name)
  expect(new Set(named)).toEqual(new Set(REASONS))
})
