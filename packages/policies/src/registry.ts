import type { Policy } from '@sluice/core'
import { algorithms, type PolicyFactory } from '@sluice/core/store'

/** The factories of algorithms, by the names that a policy file gives as `algorithm`. Default everywhere: those of core. */
export type Registry = Readonly<Record<string, PolicyFactory<never>>>

/** The name of an algorithm of core. */
export type AlgorithmName = keyof typeof algorithms

/** The options of one policy as a file has them: those of its factory, and the factory's name. */
export type PolicyEntry = {
  readonly [Name in AlgorithmName]: { readonly algorithm: Name } & Parameters<(typeof algorithms)[Name]>[0]
}[AlgorithmName]

/** The name of the option that sets how many units may pass at once; undefined for an algorithm that has none. */
export function capacityOption(
  algorithm: string,
  registry: Registry = algorithms,
): 'burst' | 'capacity' | undefined {
  return (['burst', 'capacity'] as const).find((name) => name in registry[algorithm]!.options)
}

/**
 * Makes the policy of an entry of a policy file, by the factory that it names.
 * @throws {PolicyError} as the factory does.
 */
export function makePolicy(
  { algorithm, ...options }: PolicyEntry | { readonly algorithm: string },
  registry: Registry = algorithms,
): Policy {
  return registry[algorithm]!(options as never)
}
