import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'

const folder = resolve(__dirname, '..')
const read = (path: string) => readFileSync(resolve(folder, path), 'utf8')

const alerts = read('alerts.yml')
const alertNames = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name]) => name)
const alertExpressions = [...alerts.matchAll(/expr: (.+)/g)].map(([, expression = '']) => expression)
const panelExpressions = readdirSync(resolve(folder, 'grafana')).flatMap((file) => {
  const { panels } = JSON.parse(read(`grafana/${file}`)) as { panels: { targets?: { expr: string }[] }[] }
  return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
})

const attributesOf = new Map<string, readonly string[]>(
  Object.values(INSTRUMENTS).map((instrument) => [prometheusName(instrument), instrument.attributes]),
)

/** The metrics and labels of an expression that no instrument has. */
function unknownIn(expression: string): string[] {
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

  it.each([...alertExpressions, ...panelExpressions])(
    'asks only for what instruments have: %s',
    (expression) => {
      expect(unknownIn(expression)).toEqual([])
    },
  )

  it.each([
    ['rate(http_requests_total[5m])', 'no metric of ours'],
    ['sluice_nothing_total > 0', 'there is no sluice_nothing_total'],
    [`${[...attributesOf.keys()][0]}{colour="red"}`, `${[...attributesOf.keys()][0]} has no colour`],
  ])('would not ask for %s', (expression, why) => {
    expect(unknownIn(expression)).toEqual([why])
  })
})
