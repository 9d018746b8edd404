import {
  fixedWindow,
  gcra,
  leakyBucket,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import {
  type Declaration,
  GCRA,
  LEAKY_BUCKET,
  POLICY,
  SLIDING_WINDOW,
  TOKEN_BUCKET,
} from '@sluice/core/internal'

/** The factories by the name that a policy file gives as `algorithm`, each with the declaration of its options. */
export const FACTORIES = {
  slidingLog: { make: slidingLog, options: POLICY },
  gcra: { make: gcra, options: GCRA },
  fixedWindow: { make: fixedWindow, options: POLICY },
  slidingWindow: { make: slidingWindow, options: SLIDING_WINDOW },
  tokenBucket: { make: tokenBucket, options: TOKEN_BUCKET },
  leakyBucket: { make: leakyBucket, options: LEAKY_BUCKET },
}

/** The name of a factory. */
export type AlgorithmName = keyof typeof FACTORIES

export const ALGORITHM_NAMES = Object.keys(FACTORIES) as readonly AlgorithmName[]

/** The options of one policy as a file has them: those of its factory, and the factory's name. */
export type PolicyEntry = {
  readonly [Name in AlgorithmName]: { readonly algorithm: Name } & Parameters<
    (typeof FACTORIES)[Name]['make']
  >[0]
}[AlgorithmName]

/** The name of the option that sets how many units may pass at once; undefined for an algorithm that has none. */
export function capacityOption(algorithm: AlgorithmName): 'burst' | 'capacity' | undefined {
  const { options } = FACTORIES[algorithm]
  if ('burst' in options) return 'burst'
  return 'capacity' in options ? 'capacity' : undefined
}

export function optionsOf(algorithm: AlgorithmName): Declaration {
  return FACTORIES[algorithm].options
}

/**
 * A policy of these options.
 * @throws {PolicyError} as the factory does.
 */
export function makePolicy({ algorithm, ...options }: PolicyEntry): Policy {
  return (FACTORIES[algorithm].make as (options: object) => Policy)(options)
}
