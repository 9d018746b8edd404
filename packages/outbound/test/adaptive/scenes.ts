import { AdaptiveConcurrency } from '../../src/adaptive/concurrency.js'
import { adaptiveRate } from '../../src/adaptive/rate.js'
import { Aimd } from './aimd.js'
import { runConcurrency } from './concurrency-fleet.js'
import { runRate } from './rate-fleet.js'
import type { Figures } from './tally.js'

/** Over what time a fleet is simulated, and in how many parts it has figures. */
export interface Span {
  readonly forMs: number
  readonly halvesAt: number
  readonly parts?: number
}

/** A fleet, of four processes unless its title says otherwise, each with a control of its own, and a provider. */
export interface Scene {
  readonly title: string
  /** In percent: the least to be used of what the provider would serve, and the most to be refused of what is sent. */
  readonly bar: { readonly used: number; readonly refused: number }
  readonly adaptive: (seed: number, span: Span) => readonly Figures[]
  readonly aimd: (seed: number, span: Span) => readonly Figures[]
}

const WORKERS = 4
const RATE = { min: 0.1, initial: 2.5, max: 1000 }
const AT_ONCE = { min: 1, initial: 4, max: 100 }

export const scenes: readonly Scene[] = [
  rate('100 a second, with Retry-After', true, { used: 85, refused: 2 }),
  rate('100 a second, without', false, { used: 88, refused: 3 }),
  atOnce('20 at once', 0, { used: 72, refused: 4 }),
  atOnce('20 at once, one process', 0, { used: 72, refused: 4 }, 1),
  atOnce('20 at once, 60 more wait', 60, { used: 83, refused: 1 }),
]

function rate(title: string, states: boolean, bar: Scene['bar']): Scene {
  const scene = { limit: 100, states, workers: WORKERS }
  return {
    title,
    bar,
    adaptive: (seed, span) => runRate({ ...scene, ...span }, seed, (now) => adaptiveRate(RATE, 1000, now)),
    aimd: (seed, span) => runRate({ ...scene, ...span }, seed, (now) => new Aimd(RATE, now)),
  }
}

function atOnce(title: string, queue: number, bar: Scene['bar'], workers = WORKERS): Scene {
  const scene = { limit: 20, queue, serviceMs: 100, spread: 0.6, workers }
  return {
    title,
    bar,
    adaptive: (seed, span) =>
      runConcurrency({ ...scene, ...span }, seed, (now) => new AdaptiveConcurrency(AT_ONCE, now)),
    aimd: (seed, span) => runConcurrency({ ...scene, ...span }, seed, (now) => new Aimd(AT_ONCE, now)),
  }
}
