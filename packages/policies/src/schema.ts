import { type Domain, DURATION } from '@sluice/core/internal'
import { algorithms } from '@sluice/core/store'
import type { Registry } from './registry.js'
import { NAMED } from './selection.js'

/**
 * The JSON Schema (2020-12) of policy files, for editors to check and complete them. It is made from the same
 * declarations of options by which the files are read, those of the factories in `registry`.
 */
export function policySchema(registry: Registry = algorithms): object {
  const policies = {
    type: 'array',
    minItems: 1,
    maxItems: 10,
    items: { oneOf: Object.keys(registry).map((algorithm) => policyOf(algorithm, registry)) },
  }
  const textOf = (description: string, rule: object) => ({ description, type: 'string', ...rule })
  const by = textOf('Whose calls are counted together.', { pattern: `^(ip|${NAMED})$` })
  const where = textOf('Which calls are counted: path^=/api,method=POST.', { minLength: 3 })
  const texts = (description: string) => ({ description, type: 'array', items: { type: 'string' } })
  const plans = {
    description: 'Policies in place of these, by the name of a plan.',
    type: 'object',
    propertyNames: { minLength: 1 },
    additionalProperties: policies,
  }
  const addresses = texts('Addresses and CIDR blocks: 10.0.0.0/8.')
  const keys = texts('Keys as decisions report them: ip:203.0.113.7.')
  const exempt = { description: 'Callers that are not counted.', ...objectOf({ addresses, keys }, []) }
  const limiter = objectOf({ policies, by, where, plans, exempt }, ['policies'])
  const reset = texts('Limiters whose callers may begin anew when this file replaces another.')
  const limiters = { type: 'object', additionalProperties: limiter }
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Rate limits of Sluice',
    ...objectOf({ $schema: { type: 'string' }, limiters, reset }, ['limiters']),
  }
}

/** The schema of a policy of one algorithm: its name and its options, with their descriptions, and which are required. */
function policyOf(algorithm: string, registry: Registry): object {
  const options = Object.entries(registry[algorithm]!.options)
  const properties = options.map(([name, { accepts, domain }]) => [
    name,
    { description: accepts, ...(domain && schemaOf(domain)) },
  ])
  const required = ['algorithm', ...options.filter(([, { isRequired }]) => isRequired).map(([name]) => name)]
  return objectOf({ algorithm: { const: algorithm }, ...Object.fromEntries(properties) }, required)
}

/**
 * The JSON Schema of the values that an option accepts, by its declared domain: a list of values, a pattern, or whole
 * numbers between two bounds, for a duration also a text such as '10s'.
 */
function schemaOf(domain: Domain): object {
  if ('values' in domain) return { enum: domain.values }
  if ('pattern' in domain) return { type: 'string', pattern: domain.pattern.source }
  const integer = { type: 'integer', minimum: domain.least, maximum: domain.most }
  return domain.isDuration ? { anyOf: [integer, { type: 'string', pattern: DURATION.source }] } : integer
}

/** The schema of an object with these members and no others. */
function objectOf(properties: object, required: readonly string[]): object {
  return { type: 'object', required, additionalProperties: false, properties }
}
