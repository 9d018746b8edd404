import { algorithms, type Policy } from '@sluice/core/store'
import { toStringMethod } from 'fast-check'
import { models } from './models/index.js'
import type { Model, Options } from './rule.js'

/** One algorithm in one of its variants, with the factory that makes its policies and the model that judges them. */
export interface Shape {
  readonly title: string
  /** Options that make this variant; the numbers are added to them. */
  readonly variant: Partial<Options>
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
    if (model) shapes.push(...variantsOf(kebab(name), factory, model))
    else unjudged.push(kebab(name))
  }
  return { shapes, unjudged }
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
 * have its factory and its model; a counterexample of fast-check shows the title in place of the whole object.
 */
function variantsOf(title: string, factory: Shape['factory'], model: Model): Shape[] {
  return [{}, ...(model.variants ?? [])].map((variant) => {
    const name = titleOf(title, variant)
    return { title: name, variant, factory, model, [toStringMethod]: () => name }
  })
}

/** The name of an algorithm with the options of a variant, for the titles of tests: "token-bucket, refill interval". */
function titleOf(algorithm: string, variant: Partial<Options>): string {
  const options = Object.entries(variant).sort(([a], [b]) => (a < b ? -1 : 1))
  return [algorithm, ...options.map(([option, value]) => `${option} ${value}`)].join(', ')
}

/** The name of an algorithm as its title has it: `sliding-log` for `slidingLog`. */
function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
