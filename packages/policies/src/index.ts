// Rate limits as data: the file, its check and its schema.
export type { PolicyPath } from './json.js'
export {
  limiterFrom,
  limitsFrom,
  type LimitsFromOptions,
  type LimitsOfFile,
  type PoliciesInForce,
  policiesOf,
  type PolicySource,
  problemsInApp,
} from './application.js'
export * from './policy-file.js'
export * from './registry.js'
export * from './schema.js'
export { parseBy, parseWhere, type ReadPart, type Where } from './selection.js'
export * from './smells.js'
