// Rate limits as data: the file, its check and its schema.
export type { AlgorithmName, PolicyEntry } from './factories.js'
export { ALGORITHM_NAMES, capacityOption, makePolicy } from './factories.js'
export * from './policy-file.js'
export * from './schema.js'
export * from './selection.js'
export * from './smells.js'
export { mostIn, scaleOf, untouchedSpan } from './span.js'
