import { algorithms, type Policy, type PolicyFactory } from '@sluice/core/store'
import { toStringMethod } from 'fast-check'
import { models } from './models/index.js'
import type { Model, Options } from './rule.js'

/** One algorithm in one of its variants, with the factory that makes its policies and the model that judges them. */
export interface Shape {
  readonly title: string
  /** The name of the factory. */
  readonly algorithm: string
  /** Options that make this variant; the numbers are added to them. */
  readonly variant: Partial<Options>
  /** Those of them that the variant gives itself, and not every shape of the algorithm. */
  readonly own: Partial<Options>
  readonly factory: (options: Options) => Policy
  readonly model: Model
  /** How a counterexample shows it. */
  readonly [toStringMethod]: () => string
}

/**
 * Returns every variant of every algorithm of core, each with the model that judges it, and the names of algorithms without a
 * model: a new algorithm fails the kit until one is written. Both are in the order of names.
 */
export function findShapes(): { readonly shapes: readonly Shape[]; readonly unjudged: readonly string[] } {
  const shapes: Shape[] = []
  const unjudged: string[] = []
  for (const [name, factory] of Object.entries(algorithms).sort(([a], [b]) => (a < b ? -1 : 1))) {
    const model = models[name]
    if (model) shapes.push(...variantsOf(name, factory, model))
    else unjudged.push(kebab(name))
  }
  return { shapes, unjudged }
}

/**
 * Returns the shapes that differ by more than a number: every algorithm, and each variant that a word chooses, as `refill` does. They
 * are what is measured or broken of each algorithm where all shapes would take too long.
 */
export function mainShapes(): readonly Shape[] {
  return findShapes().shapes.filter(({ variant }) => {
    const values = Object.values(variant)
    return values.length === 0 || values.some((value) => typeof value === 'string')
  })
}

/** The largest cost of one call under a list of these shapes in a store that pushes at most 1,000 entries to a log at once, as Redis does. */
export function mostCost(shapes: readonly Shape[]): number {
  return shapes.some((shape) => sampleOf(shape).algorithm.ring) ? 1000 : 2 ** 31
}

/** A policy of this shape, with a limit of 1 a second. */
export function sampleOf({ factory, variant }: Shape): Policy {
  return factory({ limit: 1, window: 1000, ...variant })
}

/** Returns a policy with these numbers for each variant of each algorithm, each after the title of its variant. */
export function everyPolicy(numbers: Options): readonly (readonly [title: string, policy: Policy])[] {
  return findShapes().shapes.map(({ title, variant, factory }) => [
    title,
    factory({ ...numbers, ...variant }),
  ])
}

/**
 * Returns the shapes of one algorithm: the plain one, without further options, and one for each variant that its model names. All
 * have its factory and its model; a counterexample of fast-check shows the title in place of the whole object. The window has its
 * unit, as a small number would be warned of.
 */
function variantsOf(algorithm: string, make: PolicyFactory<never>, model: Model): Shape[] {
  const factory: Shape['factory'] = ({ window, ...options }) =>
    make((model.onlyWindow ? options : { ...options, window: `${window}ms` }) as never)
  return [{}, ...(model.variants ?? [])].map((own) => {
    const variant = { ...model.plain, ...own }
    const title = titleOf(kebab(algorithm), variant)
    return { title, algorithm, variant, own, factory, model, [toStringMethod]: () => title }
  })
}

/** The name of an algorithm with the options of a variant, for the titles of tests: "token-bucket, refill interval". */
function titleOf(algorithm: string, variant: Partial<Options>): string {
  const options = Object.entries(variant).sort(([a], [b]) => (a < b ? -1 : 1))
  return [algorithm, ...options.map(([option, value]) => `${option} ${String(value)}`)].join(', ')
}

/** The name of an algorithm as its title has it: `sliding-log` for `slidingLog`. */
function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
