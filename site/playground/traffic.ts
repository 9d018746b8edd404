import { randomFrom } from '../../packages/harness/src/figures/random.js'
import type { PastedCall } from './pasted.js'
import type { ReadSettings } from './scenario.js'

/** A call that arrives, in milliseconds from the start. */
export interface Arrival extends PastedCall {
  /** Set for clients that repeat a call until it is served: whether they wait as long as Retry-After says. */
  readonly obeys?: boolean
}

/** The calls in the order of their times. The same traffic gives the same calls, in every browser and in Node: chance comes from its seed. */
export function arrivalsOf(settings: ReadSettings): readonly Arrival[] {
  const { kind, span, cost, keys, obey, seed, calls } = settings
  if (kind === 'list') return calls
  const random = randomFrom(seed)
  const times = timesOf(settings, random).map((time) => Math.round(time * 1000) / 1000)
  // Keys are called about as often as words are used: the second half as often as the first, the third a third as often.
  const arrivalAt = (at: number, i: number): Arrival =>
    kind === 'storm'
      ? { at, cost, key: (i % keys) + 1, obeys: random() * 100 < obey }
      : { at, cost, key: Math.floor((keys + 1) ** random()) }
  return times.filter((time) => time < span).map(arrivalAt)
}

function timesOf(settings: ReadSettings, random: () => number): number[] {
  const { kind, rate, span, peak, window, burst, clients } = settings
  switch (kind) {
    case 'even':
      return Array.from({ length: Math.ceil((rate * span) / 1000) }, (_, i) => (i * 1000) / rate)
    case 'poisson':
      return randomTimes(rate, span, random)
    case 'day':
      return randomTimes(rate * peak, span, random, (part) => (1 + (peak - 1) * humpAt(part)) / peak)
    case 'edge':
      return edgeTimes(span, window, burst)
    case 'storm':
      return Array.from({ length: clients }, () => random() * 100).sort((one, other) => one - other)
    case 'list':
      return []
  }
}

/** A Poisson process of `rate` a second, of which a call at a part of the span is kept with the probability `share`. */
function randomTimes(rate: number, span: number, random: () => number, share = (_part: number) => 1) {
  const times: number[] = []
  for (let at = 0; ;) {
    at -= (Math.log(1 - random()) * 1000) / rate
    if (at >= span) return times
    if (random() <= share(at / span)) times.push(at)
  }
}

/** A day has one hump, at its middle. */
const humpAt = (part: number): number => Math.exp(-(((part - 0.5) / 0.14) ** 2))

/** `burst` calls just before every other edge between windows, and as many just after it. */
function edgeTimes(span: number, window: number, burst: number): number[] {
  const gap = window / 10 / burst
  const times: number[] = []
  for (let edge = window; edge - window / 10 < span; edge += 2 * window) {
    for (let i = 0; i < 2 * burst; i++) times.push(edge + (i - burst) * gap)
  }
  return times
}
