import { formatDuration, type Option } from '@sluice/core/internal'

/**
 * How an option is set in a form, by its declaration: by one of `choices`, or by what is typed. `otherwise` is its default as it is written.
 * @throws {TypeError} for an option of a form that none has.
 */
export function controlOf({ domain, otherwise, accepts }: Option<unknown>) {
  const written = typeof otherwise === 'string' || typeof otherwise === 'number' ? `${otherwise}` : undefined
  if (domain && 'values' in domain) return { kind: 'choice', choices: domain.values, otherwise: written }
  if (domain && 'isDuration' in domain)
    return {
      kind: 'duration',
      otherwise: typeof otherwise === 'number' ? formatDuration(otherwise) : undefined,
    }
  if (domain && 'least' in domain) return { kind: 'number', otherwise: written }
  if (/^a (?:whole )?number /.test(accepts)) return { kind: 'number', otherwise: written }
  if (accepts === '' || (domain && 'pattern' in domain)) return { kind: 'text', otherwise: written }
  throw new TypeError(`there is no control for an option that takes ${accepts}`)
}
