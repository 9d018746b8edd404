// Rate limits as data: the file, its check and its schema.
export {
  ALGORITHM_NAMES,
  type AlgorithmName,
  capacityOption,
  makePolicy,
  type PolicyEntry,
} from './factories.js'
export {
  type LimiterEntry,
  type PolicyFile,
  type Problem,
  type ReadLimiter,
  type ReadPolicies,
  readPolicies,
} from './policy-file.js'
export { policySchema } from './schema.js'
export { parseBy, parseWhere, type ReadPart, type Where } from './selection.js'
export { changesAgainst, smellsOf } from './smells.js'
export { scaleOf, untouchedSpan } from './span.js'
