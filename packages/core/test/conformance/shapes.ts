import { existsSync, readdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { toStringMethod } from 'fast-check'
import type { Policy } from '../../src/algorithms/contract/policy.js'
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

/** An algorithm that cannot be judged, and what to do about it. */
export interface Unjudged {
  readonly title: string
  readonly missing: string
}

// Both Jest and the bundle of the fault matrix are started in the root of the repository.
const ALGORITHMS = resolve('packages/core/src/algorithms')
const MODELS = resolve('packages/core/test/conformance/models')

/** Every variant of every algorithm that lies in the product's folder: a new file is found by being there. */
export function findShapes(): { readonly shapes: readonly Shape[]; readonly unjudged: readonly Unjudged[] } {
  const shapes: Shape[] = []
  const unjudged: Unjudged[] = []
  for (const file of readdirSync(ALGORITHMS).sort()) {
    if (!file.endsWith('.ts') || file === 'index.ts') continue
    const title = file.slice(0, -'.ts'.length)
    if (existsSync(join(MODELS, file))) shapes.push(...variantsOf(title, file))
    else unjudged.push({ title, missing: relative(process.cwd(), join(MODELS, file)) })
  }
  return { shapes, unjudged }
}

function variantsOf(title: string, file: string): Shape[] {
  // Written so that a bundle takes in every file of the two folders.
  const product = require(`../../src/algorithms/${file}`) as Record<string, unknown>
  const { model } = require(`./models/${file}`) as { model: Model }
  const factory = product[factoryName(title)] as Shape['factory']
  const listed = (product['variants'] ?? []) as readonly Partial<Options>[]
  const variants = new Map<string, Partial<Options>>()
  for (const variant of [{}, ...listed, ...(model.variants ?? [])])
    variants.set(titleOf(title, variant), variant)
  return [...variants].map(([name, variant]) => ({
    title: name,
    variant,
    factory,
    model,
    [toStringMethod]: () => name,
  }))
}

function titleOf(algorithm: string, variant: Partial<Options>): string {
  const options = Object.entries(variant).sort(([a], [b]) => (a < b ? -1 : 1))
  return [algorithm, ...options.map(([option, value]) => `${option} ${value}`)].join(', ')
}

function factoryName(title: string): string {
  return title.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
}
