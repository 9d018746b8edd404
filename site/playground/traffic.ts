import type { Traffic } from './scenario.js'

/** Calls in the order of their times, in milliseconds from the start. `client` is set for calls that are repeated when denied. */
export interface Arrivals {
  readonly at: readonly number[]
  readonly cost: readonly number[]
  readonly key: readonly number[]
  readonly clients: readonly Client[]
}

/** A client that wants one call served, and repeats it until it is. */
export interface Client {
  readonly key: number
  /** Whether it waits as long as Retry-After says. */
  readonly obeys: boolean
}

/** The same traffic gives the same calls, in every browser and in Node: chance comes from its seed. */
export function arrivalsOf(traffic: Traffic): Arrivals {
  const { kind, span, cost, keys, clients, obey } = traffic
  const random = randomFrom(traffic.seed)
  if (kind === 'list') {
    const { calls } = traffic
    const column = <Name extends 'at' | 'cost' | 'key'>(name: Name) => calls.map((call) => call[name])
    return { at: column('at'), cost: column('cost'), key: column('key'), clients: [] }
  }
  const at = timesOf(traffic, random)
    .map((time) => Math.round(time * 1000) / 1000)
    .filter((time) => time < span)
  const pick = keyPicker(keys, random)
  const key = at.map((_, i) => (kind === 'storm' ? (i % keys) + 1 : pick()))
  const storm = Array.from({ length: kind === 'storm' ? clients : 0 }, (_, i) => ({
    key: key[i]!,
    obeys: random() * 100 < obey,
  }))
  return { at, cost: at.map(() => cost), key, clients: storm }
}

function timesOf(traffic: Traffic, random: () => number): number[] {
  const { kind, rate, span, peak, window, burst, clients } = traffic
  switch (kind) {
    case 'even':
      return Array.from({ length: Math.ceil((rate * span) / 1000) }, (_, i) => (i * 1000) / rate)
    case 'poisson':
      return randomTimes(rate, span, random, () => 1)
    case 'day':
      // A day has one hump, at its middle.
      return randomTimes(
        rate * peak,
        span,
        random,
        (part) => (1 + (peak - 1) * Math.exp(-(((part - 0.5) / 0.14) ** 2))) / peak,
      )
    case 'edge':
      return edgeTimes(span, window, burst)
    case 'storm':
      return Array.from({ length: clients }, () => random() * 100).sort((one, other) => one - other)
    case 'list':
      return traffic.calls.map(({ at }) => at)
  }
}

/** A Poisson process of `rate` a second, of which a call at a part of the span is kept with the probability `share`. */
function randomTimes(
  rate: number,
  span: number,
  random: () => number,
  share: (part: number) => number,
): number[] {
  const times: number[] = []
  for (let at = 0; ;) {
    at -= (Math.log(1 - random()) * 1000) / rate
    if (at >= span) return times
    if (random() <= share(at / span)) times.push(at)
  }
}

/** `burst` calls just before every other edge between windows, and as many just after it. */
function edgeTimes(span: number, window: number, burst: number): number[] {
  const gap = window / 10 / burst
  const times: number[] = []
  for (let edge = window; edge - window / 10 < span; edge += 2 * window) {
    for (let i = 0; i < 2 * burst; i++) times.push(edge + (i - burst) * gap)
  }
  return times
}

/** Keys are called as often as words are used: the second half as often as the first, the third a third as often. */
function keyPicker(keys: number, random: () => number): () => number {
  const sums: number[] = []
  for (let key = 1, sum = 0; key <= keys; key++) sums.push((sum += 1 / key))
  return () => {
    const point = random() * sums.at(-1)!
    return keys === 1 ? 1 : sums.findIndex((sum) => point < sum) + 1
  }
}

/** Numbers from 0 to below 1 (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
