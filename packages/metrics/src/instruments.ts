/** One instrument. docs/metrics.md is printed from this table. */
export interface Instrument {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'up-down counter' | 'histogram'
  /** A unit of UCUM; one in braces only names what is counted. */
  readonly unit: string
  readonly attributes: readonly string[]
  readonly meaning: string
  /** Which of the values of several workers counts, of a gauge: by default the smallest. */
  readonly ofWorkers?: 'max'
}

/** Every instrument, by the name that the sources use. Both kinds of sinks make theirs from this table. */
export const INSTRUMENTS = {
  decisions: {
    name: 'sluice.decisions',
    kind: 'counter',
    unit: '{decision}',
    attributes: ['limiter', 'policy', 'result', 'reason', 'decided_by'],
    meaning:
      'Calls of consume and acquire that were decided, each counted once, under its binding policy. ' +
      'result: allowed, denied, or would_deny in shadow mode',
  },
  evaluations: {
    name: 'sluice.policy.evaluations',
    kind: 'counter',
    unit: '{evaluation}',
    attributes: ['limiter', 'policy', 'result'],
    meaning:
      'What each policy said by itself, one for each policy of the list and call. ' +
      'result: allowed or denied. Calls that no policy decided (blocked, held, onStoreError) are left out',
  },
  utilization: {
    name: 'sluice.policy.utilization',
    kind: 'counter',
    unit: '{evaluation}',
    attributes: ['limiter', 'policy', 'bucket'],
    meaning:
      'Evaluations by the share of the capacity that was in use after the call. Each is counted once, in the first ' +
      'bucket that holds it: 0.25, 0.5, 0.75, 0.8, 0.9 or 1',
  },
  tags: {
    name: 'sluice.tag.decisions',
    kind: 'counter',
    unit: '{decision}',
    attributes: ['limiter', 'tag', 'result'],
    meaning: "Decisions by what `tag` made of the key: the first 100 values, then 'other'",
  },
  limit: {
    name: 'sluice.limit',
    kind: 'gauge',
    unit: '{unit}',
    attributes: ['limiter', 'policy'],
    meaning: 'Units per window that the policy allows, as it decided last',
  },
  window: {
    name: 'sluice.window',
    kind: 'gauge',
    unit: 's',
    attributes: ['limiter', 'policy'],
    meaning: 'Window of the policy',
  },
  storeDuration: {
    name: 'sluice.store.duration',
    kind: 'histogram',
    unit: 's',
    attributes: ['limiter'],
    meaning: 'How long calls waited for a store elsewhere, answered or not',
  },
  storeAvailable: {
    name: 'sluice.store.available',
    kind: 'gauge',
    unit: '{store}',
    attributes: ['limiter'],
    meaning:
      "1 while the limiter's store decides, 0 from its 'degraded' to its 'recovered' event. Not for memory",
  },
  acquireDuration: {
    name: 'sluice.acquire.duration',
    kind: 'histogram',
    unit: 's',
    attributes: ['kind', 'name', 'result'],
    meaning:
      'How long calls waited for a turn or a permit. kind: limiter, semaphore or queue; of a queue only calls that had to wait',
  },
  waiting: {
    name: 'sluice.waiting',
    kind: 'up-down counter',
    unit: '{call}',
    attributes: ['kind', 'name'],
    meaning: 'Calls of this process that wait now',
  },
  inUse: {
    name: 'sluice.semaphore.in_use',
    kind: 'up-down counter',
    unit: '{permit}',
    attributes: ['semaphore'],
    meaning: 'Permits that this process holds',
  },
  adaptiveLimit: {
    name: 'sluice.adaptive.limit',
    kind: 'gauge',
    unit: '{call}',
    attributes: ['kind', 'name', 'key'],
    meaning:
      'An unknown limit, as this process found it last: calls at once of a semaphore, units per window of a queue ' +
      "or client. key: the first 100, then 'other'; a long one by its digest",
  },
  keys: {
    name: 'sluice.keys',
    kind: 'up-down counter',
    unit: '{key}',
    attributes: ['store'],
    meaning: 'Keys that a memory store holds',
  },
  evicted: {
    name: 'sluice.evicted',
    kind: 'counter',
    unit: '{key}',
    attributes: ['limiter'],
    meaning: 'Keys with units in use that a full memory store removed',
  },
  healed: {
    name: 'sluice.healed',
    kind: 'counter',
    unit: '{key}',
    attributes: ['limiter'],
    meaning: 'Keys whose state was unreadable and was discarded',
  },
  nearing: {
    name: 'sluice.nearing',
    kind: 'counter',
    unit: '{crossing}',
    attributes: ['limiter', 'share'],
    meaning: 'Shares of limits that a charge of this process has crossed: those of the option `nearing`',
  },
  held: {
    name: 'sluice.reservations.held',
    kind: 'up-down counter',
    unit: '{unit}',
    attributes: ['limiter'],
    meaning: 'Units that reservations of this process hold: neither settled nor at their end',
  },
  policiesAge: {
    name: 'sluice.policies.age',
    kind: 'gauge',
    unit: 's',
    attributes: ['name'],
    meaning: 'How long ago a read last found the policy file in force where it is (watchPolicies)',
    ofWorkers: 'max',
  },
  policiesErrors: {
    name: 'sluice.policies.errors',
    kind: 'counter',
    unit: '{error}',
    attributes: ['name'],
    meaning: 'Policy files that could not be read or were refused, each reason once until it changes',
  },
  policiesInForce: {
    name: 'sluice.policies.in_force',
    kind: 'gauge',
    unit: '{file}',
    attributes: ['name', 'digest'],
    meaning: '1 for the policy file in force, by the first 16 digits of its SHA-256',
  },
  warnings: {
    name: 'sluice.warnings',
    kind: 'counter',
    unit: '{warning}',
    attributes: ['limiter', 'code'],
    meaning: 'Likely mistakes in the set-up, once for each code (docs/errors.md)',
  },
} as const satisfies Record<string, Instrument>

export type InstrumentId = keyof typeof INSTRUMENTS

/** Upper bounds of the histograms' buckets in seconds: a store in the same rack up to a long wait. */
export const DURATION_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]
