import { type Declaration, formatDuration, type Option } from '@sluice/core/internal'
import type { Problems, Values } from './scenario.js'

/** Settings whose names say too little. */
const LABELS: Readonly<Record<string, string>> = {
  kind: 'calls',
  rate: 'calls a second',
  burst: 'calls a side',
  obey: '% that obey Retry-After',
  retry: 'others retry after',
  peak: 'times at the peak',
  span: 'time',
  real: 'settled at',
  takes: 'after',
  list: 'a call a line: its time (250, 1.5s, 2026-01-01T10:00:00Z), its cost, its key',
  key: 'curves of key',
}

/** Choices whose names say too little. */
const CHOICES: Readonly<Record<string, string>> = {
  even: 'Even',
  poisson: 'Poisson',
  edge: "Burst at a window's edge",
  storm: 'Retry storm',
  day: 'A day with a peak',
  list: 'A pasted list',
}

/** A field of a form for each option, as it is declared. */
export function fieldsOf(declared: Declaration, values: Values, problems: Problems, path: string) {
  const labels = path === 'settings' ? LABELS : {}
  return Object.entries(declared).map(([name, option]) => {
    const { enum: choices } = (option.schema ?? {}) as { enum?: readonly string[] }
    return {
      name,
      label: labels[name] ?? name,
      choices: choices?.map((each) => [each, CHOICES[each] ?? each]),
      value: values[name] ?? (choices ? option.otherwise : ''),
      placeholder: placeholderOf(name, option, values),
      problem: problems[`${path}.${name}`],
    }
  })
}

/** What holds where nothing is typed. */
function placeholderOf(name: string, { otherwise, schema }: Option<unknown>, { limit }: Values): unknown {
  if (name === 'real') return 'as charged'
  if (otherwise === undefined) return ['capacity', 'burst'].includes(name) ? limit : ''
  return schema && 'anyOf' in schema ? formatDuration(Number(otherwise)) : otherwise
}
