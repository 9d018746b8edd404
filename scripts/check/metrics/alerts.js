// The alerts, each with a heading in docs/runbook.md, for one way in which metrics arrive.
import { namesOf } from './ways.js'

/** Labels of decisions beside the limiter: what is left without them tells processes apart, whatever a way calls that. */
const OF_DECISIONS = 'policy, result, reason, decided_by'

/**
 * @param {import('./ways.js').Way} way
 * @returns {string} The rules as YAML.
 */
export function alertsOf(way) {
  const { title, service, serviceText } = way
  const { decisions, storeAvailable, storeDuration, acquireDuration, evicted, healed, warnings } =
    namesOf(way)
  const by = (/** @type {string} */ labels) => `by (${service.join(', ')}, ${labels})`
  const share = (/** @type {string} */ of) =>
    `sum ${by('limiter')} (rate(${decisions}{${of}}[5m])) / sum ${by('limiter')} (rate(${decisions}[5m]))`
  const decided = `sum without (${OF_DECISIONS}) (rate(${decisions}{decided_by="store"}[2m]))`
  const rules = [
    {
      alert: 'SluiceStoreDown',
      comment: [
        'The gauge is 0 while any call is decided without the store, so what the store still decides is added. A rate needs',
        'two scrapes, and by default Prometheus scrapes once a minute. All labels of a process are kept up to the minimum.',
      ],
      expr: `min ${by('limiter')} (${storeAvailable} + (${decided} or 0 * ${storeAvailable})) == 0`,
      for: '1m',
      severity: 'page',
      summary: 'The store of limiter {{ $labels.limiter }} decides nothing in at least one process',
    },
    {
      alert: 'SluiceDecidedWithoutStore',
      expr: `${share('decided_by=~"local|none"')} > 0.05`,
      for: '2m',
      severity: 'page',
      summary:
        '{{ $value | humanizePercentage }} of the decisions of limiter {{ $labels.limiter }} were made without its store',
    },
    {
      alert: 'SluiceStoreSlow',
      expr: `histogram_quantile(0.99, sum ${by('limiter, le')} (rate(${storeDuration}[5m]))) > 0.025`,
      for: '10m',
      severity: 'warn',
      summary:
        'One call in a hundred of limiter {{ $labels.limiter }} waits {{ $value | humanizeDuration }} for the store',
    },
    {
      alert: 'SluiceDeniesMost',
      expr: `${share('result="denied"')} > 0.5`,
      for: '10m',
      severity: 'warn',
      summary: 'Limiter {{ $labels.limiter }} denies {{ $value | humanizePercentage }} of its calls',
    },
    {
      alert: 'SluiceWaitsLong',
      expr: `histogram_quantile(0.99, sum ${by('kind, name, le')} (rate(${acquireDuration}[5m]))) > 10`,
      for: '10m',
      severity: 'warn',
      summary:
        'One call in a hundred waits {{ $value | humanizeDuration }} at {{ $labels.kind }} {{ $labels.name }}',
    },
    {
      alert: 'SluiceKeysEvicted',
      expr: `sum ${by('limiter')} (rate(${evicted}[5m])) > 0`,
      for: '5m',
      severity: 'warn',
      summary: 'A memory store of limiter {{ $labels.limiter }} is full and forgets keys',
    },
    {
      alert: 'SluiceStateDiscarded',
      expr: `sum ${by('limiter')} (increase(${healed}[10m])) > 0`,
      severity: 'warn',
      summary: 'Limiter {{ $labels.limiter }} met state that it cannot read',
    },
    {
      alert: 'SluiceMisconfigured',
      comment: ['A full memory store is what SluiceKeysEvicted reports, while it lasts.'],
      expr: `max ${by('limiter, code')} (${warnings}{code!="STORE_FULL"}) > 0`,
      severity: 'warn',
      summary: 'Limiter {{ $labels.limiter }} warns of its set-up: {{ $labels.code }}',
    },
  ]
  const texts = rules.map(({ alert, comment = [], expr, for: lasting, severity, summary }) =>
    [
      `      - alert: ${alert}`,
      ...comment.map((line) => `        # ${line}`),
      `        expr: ${expr}`,
      ...(lasting ? [`        for: ${lasting}`] : []),
      `        labels: { severity: ${severity} }`,
      `        annotations:`,
      `          summary: '${serviceText}: ${summary}'`,
    ].join('\n'),
  )
  return `# Alerts on the metrics of @sluice/metrics by way of ${title}, for Prometheus: rule_files: [alerts${way.suffix}.yml].
# Each has a heading in docs/runbook.md. Made by npm run check -- metrics --write.
groups:
  - name: sluice
    rules:
${texts.join('\n')}
`
}
