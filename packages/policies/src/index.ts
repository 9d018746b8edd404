// Rate limits as data: the file, its check and its schema.
export {
  ALGORITHM_NAMES,
  type AlgorithmName,
  capacityOption,
  makePolicy,
  type PolicyEntry,
} from './factories.js'
export * from './policy-file.js'
export * from './schema.js'
export * from './selection.js'
export * from './smells.js'
export { scaleOf, untouchedSpan } from './span.js'
