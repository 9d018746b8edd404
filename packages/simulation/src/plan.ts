import { randomFrom } from '@sluice/harness/figures'
import { findShapes, type Options, ruleOf, type Shape } from '@sluice/testing/internal'

/** One thing that is done in a world, at an instant in microseconds. Everything is drawn before the world begins, so that a part can be left out. */
export type Item = Call | Fault

export interface Call {
  readonly kind: 'call'
  readonly id: number
  readonly at: number
  /** The number of the place in the fleet whose process makes it. */
  readonly place: number
  readonly does:
    | 'consume'
    | 'peek'
    | 'settle'
    | 'acquire'
    | 'refund'
    | 'reset'
    | 'block'
    | 'ledger'
    | 'both'
    | 'several'
    | 'permit'
    | 'reserve'
    | 'rule'
    | 'send'
    | 'tier'
  readonly key: string
  readonly cost: number
  /** To settle: the real cost. To wait: the longest in milliseconds, and after how many its caller hangs up. */
  readonly units: number
  readonly maxWait: number
  readonly hangsUp: number | undefined
  /** Milliseconds for which a permit or a reservation is held, or after which a call is settled. */
  readonly holds: number
}

export interface Fault {
  readonly kind: 'fault'
  readonly id: number
  readonly at: number
  readonly fault: FaultName
  /** Microseconds until it is over, or for a clock, by which it is moved. */
  readonly lasts: number
  readonly place: number
  /** A second choice: whether a state is lost, or a call on its way arrives. */
  readonly choice: boolean
}

/** Faults, with the shortest and longest time that each lasts in milliseconds. */
export const FAULTS = {
  'server stopped': [10, 3000],
  'server restarted': [50, 3000],
  'server fails over': [20, 2000],
  'server out of memory': [50, 2000],
  'server read only': [50, 2000],
  'server busy': [50, 1500],
  'scripts flushed': [1, 1],
  'state broken': [1, 1],
  "server's clock forward": [1000, 86_400_000],
  "server's clock back": [1000, 86_400_000],
  'process stopped': [10, 3000],
  'process busy': [10, 1500],
  'long turn': [20, 800],
  'process killed': [10, 1500],
  'processes replaced': [100, 1500],
  'connection lost': [1, 1],
  'half-open to': [50, 2000],
  'half-open from': [50, 2000],
  unreachable: [50, 2000],
  'slow network': [100, 3000],
  'flood of keys': [10, 2000],
  'node dies': [50, 3000],
  'slot moves': [50, 3000],
  'provider lowers its limit': [100, 3000],
  'provider overloaded': [100, 4000],
  'provider silent': [100, 1500],
} as const satisfies Record<string, readonly [number, number]>

export type FaultName = keyof typeof FAULTS

/** By how many microseconds a fault moves the server's clock. */
export function movedBy({ fault, lasts }: Fault): number {
  return fault === "server's clock forward" ? lasts : fault === "server's clock back" ? -lasts : 0
}

/** The options of a policy with its limit and capacity multiplied. */
export function scaled(options: Options, factor: number): Options {
  const numbers = ['limit', 'capacity', 'burst'].filter((name) => name in options)
  const larger = numbers.map((name) => [name, Math.max(1, Math.floor(Number(options[name]) * factor))])
  return { ...options, ...(Object.fromEntries(larger) as object) }
}

/** A policy: a shape of the conformance kit with its numbers, as each process makes it and as the kit's models judge it. */
export interface PolicySpec {
  readonly shape: Shape
  readonly options: Options
}

export interface Plan {
  readonly seed: number
  readonly places: number
  /** Nodes among which keys are divided: of a Cluster more than one. */
  readonly nodes: number
  readonly policies: readonly PolicySpec[]
  /** Limits of the processes that replace others, as a factor. */
  readonly factor: number
  readonly onStoreError: 'local' | 'allow' | 'deny' | 'throw'
  /** Of the limiter, where it has them: leases, and a penalty. */
  readonly extras: Readonly<{
    leases?: { readonly ttl: number; readonly size: number }
    penalty?: {
      readonly after: number
      readonly block: number
      readonly factor: number
      readonly maxBlock: number
      readonly forgetAfter: number
      readonly then: 'window' | 'fresh'
    }
  }>
  readonly deadline: number
  /** Whether connections are the stores' own, which close after a second without a reply. */
  readonly isWatched: boolean
  /** Microseconds until a process's first connection is ready. */
  readonly connects: number
  /** Microseconds of one way: at least, and the mean of what comes on top. */
  readonly delay: readonly [number, number]
  /** Microseconds until the provider has answered. */
  readonly latency: number
  readonly items: readonly Item[]
}

/** Microseconds in which faults happen, and in which calls are made. */
const FAULTS_FROM = 1_500_000
const FAULTS_UNTIL = 9_000_000
export const CALLS_UNTIL = 12_000_000
const CALLS = 560

interface Draws {
  /** From 0 up to 1. */
  random(this: void): number
  /** A whole number between these, both included. */
  whole(this: void, from: number, to: number): number
  of<T>(this: void, list: readonly T[]): T
}

function drawsFrom(seed: number): Draws {
  const random = randomFrom(Math.imul(seed, 2_654_435_761))
  const whole = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1))
  return { random, whole, of: (list) => list[whole(0, list.length - 1)]! }
}

/** Draws a plan from a seed. */
export function draw(seed: number): Plan {
  const draws = drawsFrom(seed)
  const { random, whole, of } = draws
  const places = whole(4, 6)
  const drawn = drawPolicies(draws)
  const extras = drawExtras(draws, drawn)
  // Leases are for keys of many calls.
  const policies = extras.leases
    ? drawn.map((spec) => ({ ...spec, options: scaled(spec.options, 8) }))
    : drawn
  const hasPairs = seed % EACH_WITH_PAIRS === 0
  const nodes = [1, 4].includes(seed % 7) && !hasPairs ? 2 : 1
  // Not between faults that are to meet.
  const more = hasPairs ? [] : drawMore(seed, places, nodes)
  const faults = hasPairs ? drawPairs(seed / EACH_WITH_PAIRS, draws, places) : drawMixture(draws, places)
  return {
    seed,
    places,
    nodes,
    policies,
    factor: of([0.5, 2, 3]),
    onStoreError: of(hasPairs ? WAITING_MODES : MODES),
    extras,
    deadline: of([20, 50, 50, 200]),
    isWatched: random() < 0.7,
    connects: of(hasPairs ? [500, 300_000] : [500, 500, 300_000]),
    delay: of([
      [100, 50],
      [100, 50],
      [2000, 1000],
      [300, 5000],
    ] as const),
    latency: of([20_000, 600_000]),
    items: [
      ...faults,
      ...more,
      ...drawCalls(draws, places, drawn, extras).map((each) =>
        hasPairs ? beside(faults, each, draws) : each,
      ),
    ].toSorted((a, b) => a.at - b.at),
  }
}

const MODES = ['local', 'local', 'allow', 'deny', 'throw'] as const
/** Where pairs of faults meet, most waits go on through them. */
const WAITING_MODES = ['local', 'allow', 'deny', 'throw', 'throw'] as const

/** Faults that do the same kind of harm. */
const GROUPS: readonly (readonly FaultName[])[] = [
  ['server restarted', 'server fails over', 'state broken'],
  ["server's clock forward", "server's clock back"],
  ['server stopped', 'connection lost', 'half-open to', 'half-open from', 'unreachable', 'slow network'],
  ['process stopped', 'process busy', 'long turn', 'process killed', 'processes replaced'],
  ['server out of memory', 'server read only', 'server busy', 'scripts flushed'],
  ['provider lowers its limit', 'provider overloaded', 'provider silent'],
]

/** Microseconds that a fault lasts, at most so many milliseconds, evenly over magnitudes: 0 is the shortest and 1 the longest. */
function lastingOf(fault: FaultName, share: number, longest = Infinity): number {
  const [least, most] = FAULTS[fault]
  const isClock = fault.startsWith("server's clock")
  return Math.round(least * ((isClock ? most : Math.min(most, longest)) / least) ** share * 1000)
}

/** Milliseconds that a process is stopped at most; most stops are shorter. */
const LONGEST_STOP_MS = 60_000

/**
 * Faults that four of seven plans without pairs have beside the others, by draws of their own: plans of the seeds that were kept
 * before have none, and stay as they are.
 */
function drawMore(seed: number, places: number, nodes: number): Fault[] {
  if (![0, 1, 2, 4].includes(seed % 7)) return []
  const { random, whole, of } = drawsFrom(seed + 0x5eed)
  const ofCluster = ['node dies', 'slot moves', 'slot moves'] as const
  return Array.from({ length: nodes > 1 ? 4 : 2 }, (_, i) => {
    const id = 700 + i
    const fault = of(i < 2 ? (['flood of keys', 'flood of keys', 'process stopped'] as const) : ofCluster)
    const isLong = fault === 'process stopped' && random() < 0.3
    const lasts = isLong ? whole(3000, LONGEST_STOP_MS) * 1000 : lastingOf(fault, random())
    const at = whole(FAULTS_FROM, FAULTS_UNTIL)
    return { kind: 'fault', id, at, fault, lasts, place: whole(0, places - 1), choice: random() < 0.5 }
  })
}

/** In the plan of each so-manieth seed faults meet by pairs. */
export const EACH_WITH_PAIRS = 3
const PAIRS = 12
const PAIRS_ALIKE = 4
/** Milliseconds that a fault of a pair lasts at most: about until the next pair begins. */
const PAIRED_MS = 700

/** Groups of which faults meet: smaller ones, as of two of them each should meet each. */
const MEETING: readonly (readonly FaultName[])[] = [
  ...GROUPS.filter((group) => !group.includes('unreachable') && !group.includes('process killed')),
  ['server stopped', 'slow network'],
  ['connection lost', 'unreachable'],
  ['half-open to', 'half-open from'],
  ['process stopped', 'process busy', 'long turn'],
  ['process killed', 'processes replaced'],
]

/**
 * Pairs, of which the second fault begins within half a second of the first one's beginning or end, at distances evenly over magnitudes.
 * Four each are of two groups, the next four of the next two.
 */
function drawPairs(round: number, { random, whole, of }: Draws, places: number): Fault[] {
  const faults: Fault[] = []
  const add = (fault: FaultName, begins: number, place: number): Fault => {
    // More of them last long, as they are to meet.
    const lasts = lastingOf(fault, Math.sqrt(random()), PAIRED_MS)
    const [id, at, choice] = [faults.length, Math.round(begins), random() < 0.5]
    const made: Fault = { kind: 'fault', id, at, fault, lasts, place, choice }
    faults.push(made)
    return made
  }
  for (let pair = 0; pair < PAIRS; pair++) {
    // By steps of five, so that neither group stays for long.
    const both = (Math.floor((round * PAIRS + pair) / PAIRS_ALIKE) * 5) % MEETING.length ** 2
    const first = of(MEETING[both % MEETING.length]!)
    const second = of(MEETING[Math.floor(both / MEETING.length)]!)
    // Where long turns may make more calls than may be on their way.
    const place = whole(0, first === 'long turn' || second === 'long turn' ? 1 : places - 1)
    const a = add(first, FAULTS_FROM + ((pair + random() / 2) / PAIRS) * (FAULTS_UNTIL - FAULTS_FROM), place)
    const isOfItsEnd = movedBy(a) === 0 && random() < 0.5
    const apart = 500 * 1000 ** random()
    add(
      second,
      isOfItsEnd ? a.at + a.lasts + (random() < 0.5 ? -apart : apart) : a.at + apart,
      random() < 0.7 ? place : whole(0, places - 1),
    )
  }
  return faults
}

/** The calls that go on for longest through faults of a kind. */
function concernedBy(fault: FaultName): Call['does'] | undefined {
  if (fault.startsWith('provider')) return 'send'
  if (fault.startsWith("server's clock") || fault === 'process killed') return 'permit'
  return fault.startsWith('process') || fault === 'long turn' ? undefined : 'acquire'
}

/** A call where faults meet: half of them are of the place of the latest one, and half of those on the hot key are such as it concerns most. */
function beside(faults: readonly Fault[], call: Call, { random, whole }: Draws): Call {
  const latest = faults.findLast(({ at }) => at <= call.at)
  if (!latest) return call
  const place = random() < 0.5 ? latest.place : call.place
  const does = (call.key === 'plain0' && random() < 0.5 && concernedBy(latest.fault)) || call.does
  const key = does === call.does ? call.key : keyOf(does, random(), whole)
  // Waits of all lengths, and permits that are held for longer.
  const maxWait = does === 'acquire' ? Math.round(30 * 300 ** random()) : call.maxWait
  const holds = does === 'permit' ? Math.min(2 * call.holds, 4000) : call.holds
  return { ...call, does, key, place, maxWait, holds }
}

/** A few faults of any kind, or many of three kinds that do different harm, which so meet in every order. */
function drawMixture({ random, whole, of }: Draws, places: number): Fault[] {
  const isDense = random() < 0.6
  const groups = [...GROUPS]
  const three = Array.from({ length: 3 }, () => of(groups.splice(whole(0, groups.length - 1), 1)[0]!))
  const kinds = isDense ? three : GROUPS.flat()
  const faults: Fault[] = []
  for (let i = isDense ? 12 : whole(3, 7); i > 0; i--) {
    const fault = of(kinds)
    const lasts = lastingOf(fault, random())
    // Half of them begin while another one lasts, or soon after it.
    const other = faults.length > 0 && random() < 0.5 ? of(faults) : undefined
    const at = other
      ? other.at + random() * (Math.min(other.lasts, 1_000_000) + 700_000)
      : FAULTS_FROM + random() * (FAULTS_UNTIL - FAULTS_FROM)
    faults.push({
      kind: 'fault',
      id: i,
      at: Math.round(at),
      fault,
      lasts,
      place: other && random() < 0.5 ? other.place : whole(0, places - 1),
      choice: random() < 0.5,
    })
  }
  return faults
}

const { shapes: SHAPES } = findShapes()
/** Of each a window ends after 6 s of a world. */
const CALENDARS = [{ every: 'month' }, { every: 'day', timeZone: 'Asia/Tokyo', anchor: '2025-01-31T09:00' }]

function drawPolicies({ whole, of, random }: Draws): readonly PolicySpec[] {
  return Array.from({ length: random() < 0.6 ? 1 : 2 }, (_, i): PolicySpec => {
    const shape = of(SHAPES)
    const { model } = shape
    const { capacity } = model
    const variant = model.onlyWindow ? of(CALENDARS) : shape.variant
    const window = model.onlyWindow?.(variant) ?? of([200, 1000, 1000, 3000, 10_000])
    const most = capacity ? { [capacity]: whole(1, 30) } : {}
    return { shape, options: { limit: whole(1, 20), window, name: `policy ${i}`, ...most, ...variant } }
  })
}

function drawExtras({ random, of, whole }: Draws, policies: readonly PolicySpec[]): Plan['extras'] {
  const kind = random()
  const ttl = of([20, 200, 200])
  // Also of processes with half of the limits.
  const leaveUnits = policies.every(({ shape, options }) => shape.model.leased?.(scaled(options, 0.5), ttl))
  if (kind < 0.6 && leaveUnits) return { leases: { ttl, size: whole(2, 20) } }
  const [factor, then] = [of([1, 2]), of(['window', 'window', 'fresh'] as const)]
  if (kind > 0.65) {
    const [after, block, forgetAfter] = [whole(1, 4), of([300, 1000]), of([500, 5000])]
    return { penalty: { after, block, factor, maxBlock: 4 * block, forgetAfter, then } }
  }
  return {}
}

/** Calls by how many of all they and those before them are. */
const WHAT: readonly (readonly [does: Call['does'], most: number])[] = [
  ['consume', 0.32],
  ['tier', 0.35],
  ['peek', 0.37],
  ['settle', 0.48],
  ['acquire', 0.545],
  ['refund', 0.56],
  ['reset', 0.565],
  ['block', 0.58],
  ['permit', 0.64],
  ['both', 0.675],
  ['several', 0.71],
  ['ledger', 0.82],
  ['reserve', 0.88],
  ['rule', 0.905],
  ['send', 1],
]

/** The key of a call. Those that are plain get no corrections, so that each denial can be judged; one of them is hot. */
function keyOf(does: Call['does'], random: number, whole: Draws['whole']): string {
  if (does === 'ledger') return `ledger${whole(0, 3)}`
  if (does === 'rule') return `ledger${whole(1, 3)}`
  if (does === 'reserve') return `budget${whole(0, 1)}`
  if (does === 'send') return 'provider'
  if (does === 'permit') return `permits${whole(0, 1)}`
  if (does === 'acquire') return `turns${whole(0, 1)}`
  if (!['consume', 'peek'].includes(does)) return `mixed${whole(0, 3)}`
  if (random < 0.55) return 'plain0'
  return random < 0.85 ? `plain${whole(1, 5)}` : random < 0.93 ? 'turns0' : `mixed${whole(0, 3)}`
}

/** Calls in bursts, steady, on hot keys and on many; some keys get plain calls alone, so that each denial can be judged. */
function drawCalls(
  { random, whole }: Draws,
  places: number,
  policies: readonly PolicySpec[],
  { leases }: Plan['extras'],
): Call[] {
  const most = Math.min(
    ...policies.map(({ shape: { model }, options }) => Number(ruleOf(model, options).capacity)),
  )
  const calls: Call[] = []
  let at = 0
  let last: Call | undefined
  for (let id = 0; id < CALLS; id++) {
    // A burst has no time in between, a silence much.
    const kind = random()
    at +=
      kind < 0.15
        ? 0
        : kind < 0.35
          ? random() * 15_000
          : kind < 0.99
            ? -Math.log(1 - random()) * 33_000
            : random() * 800_000
    if (at > CALLS_UNTIL) at = random() * CALLS_UNTIL
    const what = random()
    // Half of a burst comes from one place, on a hot key. Leases are for longer rows of calls.
    const isHot = (leases || kind < 0.35) && last?.key === 'plain0' && random() < (leases ? 0.85 : 0.7)
    const does = isHot ? 'consume' : WHAT.find(([, most]) => what < most)![0]
    const key = isHot ? 'plain0' : keyOf(does, random(), whole)
    const isLarge = random() < (key === 'plain0' ? 0.5 : 0.3)
    // A little more than the capacity never fits.
    const cost = isLarge ? whole(1, Math.max(1, key === 'plain0' ? most + 1 : Math.ceil(most / 2))) : 1
    last = {
      kind: 'call',
      id,
      at: Math.round(at),
      place: isHot ? last!.place : whole(0, places - 1),
      does,
      key,
      cost,
      units: whole(0, cost),
      maxWait: whole(0, 3000),
      hangsUp: random() < 0.2 ? whole(1, 1500) : undefined,
      holds: Math.ceil(4000 * random() ** 3),
    }
    calls.push(last)
  }
  return calls
}
