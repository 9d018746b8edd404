// The dashboard for Grafana, for one way in which metrics arrive.
import { namesOf } from './ways.js'

const DATASOURCE = { type: 'prometheus', uid: '${datasource}' }
const RATE = '[$__rate_interval]'

/**
 * @typedef {object} Panel
 * @property {string} title
 * @property {string} [type] Of a panel of Grafana; a time series by default.
 * @property {string} [description]
 * @property {string} unit
 * @property {number} w Its width, of 24.
 * @property {readonly (readonly [expr: string, legend: string])[]} targets
 */

/**
 * The panels, in their order from the left and from the top.
 * @param {import('./ways.js').Way} way
 * @returns {readonly Panel[]}
 */
function panelsOf(way) {
  const { service } = way
  const name = namesOf(way)
  const by = (/** @type {string} */ labels) => `by (${service.join(', ')}, ${labels})`
  const rate = (/** @type {string} */ labels, /** @type {string} */ series) =>
    `sum ${by(labels)} (rate(${series}${RATE}))`
  const share = (/** @type {string} */ labels, /** @type {string} */ series, /** @type {string} */ of) =>
    `${rate(labels, `${series}{${of}}`)} / ${rate(labels, series)}`
  const quantile = (/** @type {number} */ q, /** @type {string} */ labels, /** @type {string} */ buckets) =>
    `histogram_quantile(${q}, ${rate(`${labels}, le`, buckets)})`
  return [
    {
      title: 'Is the store deciding?',
      type: 'stat',
      description: 'Whether the store decides, by limiter (0: in at least one process it does not)',
      unit: 'none',
      w: 6,
      targets: [[`min ${by('limiter')} (${name.storeAvailable})`, '{{limiter}}']],
    },
    {
      title: 'Who decides',
      description: 'store and cache: the store. local and none: onStoreError',
      unit: 'reqps',
      w: 9,
      targets: [[rate('decided_by', name.decisions), '{{decided_by}}']],
    },
    {
      title: 'How long calls wait for the store',
      unit: 's',
      w: 9,
      targets: [
        [quantile(0.5, 'limiter', name.storeDuration), '{{limiter}} p50'],
        [quantile(0.99, 'limiter', name.storeDuration), '{{limiter}} p99'],
      ],
    },
    {
      title: 'Denied share by limiter',
      unit: 'percentunit',
      w: 8,
      targets: [[share('limiter', name.decisions, 'result="denied"'), '{{limiter}}']],
    },
    {
      title: 'Denials by policy and reason',
      unit: 'reqps',
      w: 8,
      targets: [
        [
          rate('limiter, policy, reason', `${name.decisions}{result="denied"}`),
          '{{limiter}} {{policy}} {{reason}}',
        ],
      ],
    },
    {
      title: 'Would be denied, in shadow mode',
      description: 'The share that limiters with enforce: false would deny',
      unit: 'percentunit',
      w: 8,
      targets: [[share('limiter', name.decisions, 'result="would_deny"'), '{{limiter}}']],
    },
    {
      title: 'Calls near the limit',
      description: 'The share of calls after which more than 90 % of the capacity was in use',
      unit: 'percentunit',
      w: 8,
      targets: [[share('limiter, policy', name.utilization, 'bucket="1"'), '{{limiter}} {{policy}}']],
    },
    {
      title: 'Utilization',
      type: 'bargauge',
      description: 'Calls by the share of the capacity in use after them',
      unit: 'short',
      w: 8,
      targets: [[`sum ${by('bucket')} (increase(${name.utilization}[$__range]))`, 'up to {{bucket}}']],
    },
    {
      title: 'What each policy denies by itself',
      unit: 'reqps',
      w: 8,
      targets: [[rate('limiter, policy', `${name.evaluations}{result="denied"}`), '{{limiter}} {{policy}}']],
    },
    {
      title: 'Limits',
      type: 'table',
      unit: 'short',
      w: 12,
      targets: [
        [`max ${by('limiter, policy')} (${name.limit})`, 'limit'],
        [`max ${by('limiter, policy')} (${name.window})`, 'window'],
      ],
    },
    {
      title: 'Denials by tag',
      description:
        'Keys are no labels: topKeys(limiter) lists them in the process, fleetTopKeys(store, name) those of all. Tags are what `tag` makes of keys',
      unit: 'reqps',
      w: 12,
      targets: [[rate('limiter, tag', `${name.tags}{result="denied"}`), '{{limiter}} {{tag}}']],
    },
    {
      title: 'Waits for a turn or a permit, p99',
      unit: 's',
      w: 8,
      targets: [[quantile(0.99, 'kind, name', name.acquireDuration), '{{kind}} {{name}}']],
    },
    {
      title: 'Calls that wait',
      unit: 'short',
      w: 8,
      targets: [[`sum ${by('kind, name')} (${name.waiting})`, '{{kind}} {{name}}']],
    },
    {
      title: 'Permits in use',
      unit: 'short',
      w: 8,
      targets: [[`sum ${by('semaphore')} (${name.inUse})`, '{{semaphore}}']],
    },
    {
      title: 'Keys in memory stores',
      unit: 'short',
      w: 8,
      targets: [[`sum ${by('store')} (${name.keys})`, '{{store}}']],
    },
    {
      title: 'Keys evicted, state discarded',
      description: 'Both stay 0',
      unit: 'short',
      w: 8,
      targets: [
        [rate('limiter', name.evicted), 'evicted {{limiter}}'],
        [rate('limiter', name.healed), 'discarded {{limiter}}'],
      ],
    },
    {
      title: 'Warnings of the set-up',
      type: 'table',
      description: 'docs/errors.md explains each code',
      unit: 'short',
      w: 8,
      targets: [[`max ${by('limiter, code')} (${name.warnings})`, '{{limiter}} {{code}}']],
    },
  ]
}

/**
 * @param {import('./ways.js').Way} way
 * @returns {string} The dashboard as JSON.
 */
export function dashboardOf(way) {
  const { service, suffix, title } = way
  const serviceName = service.map((label) => `{{${label}}}`).join(' ')
  let [x, y] = [0, 0]
  const panels = panelsOf(way).map(
    ({ title, type = 'timeseries', description = '', unit, w, targets }, i) => {
      if (x + w > 24) [x, y] = [0, y + 8]
      const gridPos = { h: 8, w, x, y }
      x += w
      const fieldConfig = { defaults: { unit, min: 0 }, overrides: [] }
      const asked = targets.map(([expr, legend], j) => {
        const inTable = type === 'table' && { instant: true, format: 'table' }
        return { refId: 'ABC'[j], expr, legendFormat: `${serviceName} ${legend}`, ...inTable }
      })
      const about = { id: i + 1, title, type, description, datasource: DATASOURCE }
      return { ...about, gridPos, fieldConfig, options: {}, targets: asked }
    },
  )
  const down = {
    name: 'Store down',
    datasource: DATASOURCE,
    enable: true,
    iconColor: 'red',
    expr: `min by (${service.join(', ')}, limiter) (${namesOf(way).storeAvailable}) == 0`,
    titleFormat: `${serviceName} {{limiter}}: the store does not decide`,
  }
  const dashboard = {
    title: suffix === '' ? 'Sluice' : `Sluice, by ${title}`,
    uid: `sluice${suffix.replace('.', '-')}`,
    schemaVersion: 39,
    version: 1,
    tags: ['rate-limit'],
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    timezone: 'browser',
    editable: true,
    templating: {
      list: [
        {
          name: 'datasource',
          label: 'Data source',
          type: 'datasource',
          query: 'prometheus',
          current: {},
          hide: 0,
        },
      ],
    },
    annotations: { list: [down] },
    panels,
  }
  return JSON.stringify(dashboard)
}
