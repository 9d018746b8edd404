import type { Policy } from '@sluice/core'
import * as declared from '@sluice/core/internal'
import { algorithms } from '@sluice/core/store'

/** The factories by the name that a policy file gives as `algorithm`, each with the declaration of its options. */
export const FACTORIES = {
  slidingLog: { make: algorithms.slidingLog, options: declared.POLICY },
  gcra: { make: algorithms.gcra, options: declared.GCRA },
  fixedWindow: { make: algorithms.fixedWindow, options: declared.POLICY },
  slidingWindow: { make: algorithms.slidingWindow, options: declared.SLIDING_WINDOW },
  tokenBucket: { make: algorithms.tokenBucket, options: declared.TOKEN_BUCKET },
  leakyBucket: { make: algorithms.leakyBucket, options: declared.LEAKY_BUCKET },
}

/** The name of a factory. */
export type AlgorithmName = keyof typeof FACTORIES

export const ALGORITHM_NAMES = Object.keys(FACTORIES) as readonly AlgorithmName[]

type OptionsOf<Name extends AlgorithmName> = Parameters<(typeof FACTORIES)[Name]['make']>[0]

/** The options of one policy as a file has them: those of its factory, and the factory's name. */
export type PolicyEntry = {
  readonly [Name in AlgorithmName]: { readonly algorithm: Name } & OptionsOf<Name>
}[AlgorithmName]

/** The name of the option that sets how many units may pass at once; undefined for an algorithm that has none. */
export function capacityOption(algorithm: AlgorithmName): 'burst' | 'capacity' | undefined {
  return (['burst', 'capacity'] as const).find((name) => name in FACTORIES[algorithm].options)
}

/**
 * Makes the policy of an entry of a policy file, by the factory that it names.
 * @throws {PolicyError} as the factory does.
 */
export function makePolicy({ algorithm, ...options }: PolicyEntry): Policy {
  return (FACTORIES[algorithm].make as (options: object) => Policy)(options)
}
