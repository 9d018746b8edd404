// The ways in which metrics reach Prometheus: how each names an instrument, and the labels by which it tells services apart.
import { INSTRUMENTS, prometheusName } from '@sluice/metrics'

/** @typedef {import('@sluice/metrics').Instrument} Instrument */
/** @typedef {keyof typeof INSTRUMENTS} InstrumentId */

/**
 * @typedef {object} Way
 * @property {string} id
 * @property {string} title
 * @property {string} suffix Of the names of its files.
 * @property {(instrument: Instrument) => string} nameOf
 * @property {readonly string[]} service The labels of a service. Each expression keeps them: two services may have a limiter of one name.
 * @property {string} serviceText A service in the text of an alert.
 * @property {string} process The label that tells a service's processes apart, as it is usually called. Any other does as well.
 */

/** By Kubernetes, or by nothing where Prometheus scrapes one cluster. */
const SCRAPED = ['cluster', 'namespace', 'job']

/** @type {readonly Way[]} */
export const WAYS = [
  {
    id: 'prom-client',
    title: 'prom-client, scraped',
    suffix: '',
    nameOf: prometheusName,
    service: SCRAPED,
    serviceText: '{{ $labels.namespace }} {{ $labels.job }}',
    process: 'instance',
  },
  {
    // It writes no unit into a name: sluice_window, sluice_store_duration_bucket.
    id: 'exporter-prometheus',
    title: '@opentelemetry/exporter-prometheus, scraped',
    suffix: '.exporter-prometheus',
    nameOf: (instrument) => prometheusName({ ...instrument, unit: '' }),
    service: SCRAPED,
    serviceText: '{{ $labels.namespace }} {{ $labels.job }}',
    process: 'instance',
  },
  {
    // The specification of OpenTelemetry has units in names as prom-client's users write them, service.namespace and service.name as
    // job, and service.instance.id as instance. Scraped without honor_labels, these are exported_job and exported_instance.
    id: 'collector',
    title: 'a collector of OpenTelemetry, scraped or by remote write',
    suffix: '.collector',
    nameOf: prometheusName,
    service: [...SCRAPED, 'exported_job', 'k8s_namespace_name'],
    serviceText: '{{ $labels.job }} {{ $labels.exported_job }}',
    process: 'instance or exported_instance',
  },
]

/**
 * The name of each instrument in Prometheus, by its id; of a histogram that of its buckets.
 * @param {Way} way
 * @returns {Record<InstrumentId, string>}
 */
export function namesOf({ nameOf }) {
  const names = Object.entries(INSTRUMENTS).map(([id, instrument]) => {
    const name = nameOf(instrument)
    return [id, instrument.kind === 'histogram' ? `${name}_bucket` : name]
  })
  return Object.fromEntries(names)
}
