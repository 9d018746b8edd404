import { findShapes, type Options } from '@sluice/testing/internal'
import { judge } from '../src/laws.js'
import type { Member } from '../src/member.js'
import { type Call, draw, type Fault, type FaultName, type Plan } from '../src/plan.js'
import { OPERATIONS } from '../../core/src/stores/redis/script/wire.js'
import type { Execution } from '../src/server.js'
import type { History, Record, Told } from '../src/simulation.js'

const S = 1_000_000
const FAILURES = 'nothing fails but with an error of the store'
const TOUCHED = 'a call that no fault touches is decided by the store'
const PROMISE = 'what the server admits keeps the promise of each policy'
const PERMITS = 'no more permits are held than there are'
const FREE = 'permits are free again'

const { shapes } = findShapes()
const policy = (algorithm: string, options: Options & { every?: string }) => ({
  shape: shapes.find((shape) => shape.algorithm === algorithm)!,
  options,
})
const PLAN: Plan = {
  ...draw(1),
  policies: [policy('slidingLog', { limit: 5, window: 3000 })],
  onStoreError: 'local',
  extras: {},
  deadline: 50,
  delay: [100, 50],
  items: [],
}
const member = {
  name: 'p0.0',
  process: { isDead: false, startedAt: 0 },
  link: { breaks: [], heard: [] },
  holds: [],
  rules: [],
  reserved: [],
  stills: [],
  failures: [],
  crossings: [],
} as unknown as Member

/** A history in which nothing happens. */
const NOTHING = {
  plan: PLAN,
  members: [member],
  faults: [],
  late: [],
  stray: [],
  left: [],
  listed: undefined,
  calmAt: 0,
  counted: new Map(),
  provider: { arrivals: [] },
  twin: { isBlind: true, differences: [], compared: 0, charged: new Map(), booked: new Map() },
}
const CALL = { kind: 'call', place: 0, key: 'plain0', cost: 1, units: 0, maxWait: 3000, holds: 1 } as const
const ALLOWED = { allowed: true, degraded: undefined, reason: undefined, isCached: false } as const
const NUMBERS = { limit: 5, remaining: 0, blockedUntil: 0, nextUnitAt: 0 } as const

const callOf = (id: number, at: number, does: Call['does']): Call => ({
  ...CALL,
  id,
  at,
  does,
  hangsUp: undefined,
})

function recordOf(call: Call, outcome: Partial<Record>): Record {
  const { at } = call
  const nothing = { told: undefined, error: undefined, isUnsent: false, execution: undefined, clock: at }
  return { call, member, startedAt: at, settledAt: at + 1000, ...nothing, ...outcome }
}

/** A call that was made at an instant of the world and admitted by a run of a script at an instant of the server's clock. */
function admitted(id: number, at: number, clock: number): Record {
  const told = { ...ALLOWED, ...NUMBERS, now: clock, at: clock }
  const script = { text: '', decidesWholes: false }
  const rest = { script, args: [], reply: Buffer.alloc(0), sentAt: at, deliveredAt: at + 1000, isFull: false }
  const execution = {
    ...rest,
    number: id,
    life: 0,
    clock,
    at,
    keys: ['sluice:4:api:x:plain0'],
    process: member.name,
  }
  return recordOf(callOf(id, at, 'consume'), { told, execution, clock })
}

const faultOf = (fault: FaultName, at: number, lasts: number): Fault => {
  return { kind: 'fault', id: 0, place: 0, choice: false, fault, at, lasts }
}

/** What breaks a law in a history of these records, by the beginning of the law's name. */
function breaches(
  records: readonly Record[],
  parts: Partial<Omit<History, 'server'>> & { server?: object } = {},
): Map<string, string> {
  const executions = records.flatMap(({ execution }) => execution ?? [])
  const history = {
    ...NOTHING,
    records,
    ...parts,
    server: { life: 0, hasLost: () => false, losses: [], executions, ...parts.server },
  } as unknown as History
  return new Map(judge(history).broken.map(([{ name }, breach]) => [name, breach]))
}

const broken = (law: string, found: Map<string, string>): string | undefined =>
  [...found].find(([name]) => name.startsWith(law))?.[1]

describe('calls that fail', () => {
  const ALL = [
    'consume',
    'peek',
    'tier',
    'settle',
    'ledger',
    'both',
    'several',
    'refund',
    'reset',
    'block',
  ] as const
  const OTHERS = ['acquire', 'permit', 'reserve', 'rule', 'send'] as const

  it.each([...ALL, ...OTHERS])('may not throw what nobody expects: %s', (does) => {
    for (const onStoreError of ['local', 'allow', 'deny', 'throw'] as const) {
      const record = recordOf(callOf(1, 9 * S, does), { error: 'TypeError: x is undefined' })
      const found = breaches([record], { plan: { ...PLAN, onStoreError } })
      expect(broken(FAILURES, found)).toBe(`call 1 (${does}) of p0.0 failed with TypeError: x is undefined`)
    }
  })

  it.each([
    ['consume', 'local', true],
    ['consume', 'throw', false],
    ['both', 'deny', true],
    ['ledger', 'throw', true],
    ['refund', 'local', false],
  ] as const)('have an error of the store where they may: %s under %s', (does, onStoreError, isWrong) => {
    const record = recordOf(callOf(1, 9 * S, does), { error: 'STORE_TIMEOUT' })
    const found = breaches([record], { plan: { ...PLAN, onStoreError } })
    expect(broken(FAILURES, found) !== undefined).toBe(isWrong)
  })

  it('may not throw later what nobody expects', () => {
    const failures = [{ call: callOf(1, S, 'settle'), error: 'TypeError: x is undefined' }]
    const found = breaches([], { members: [Object.assign(Object.create(member) as Member, { failures })] })
    expect(broken(FAILURES, found)).toMatch('what call 1 (settle) does later')
  })

  it.each([...ALL, ...OTHERS])('are decided by the store where nothing is wrong: %s', (does) => {
    const probe = recordOf(callOf(1, 8 * S, 'consume'), {})
    const told: Told = { ...ALLOWED, ...NUMBERS, degraded: 'timeout', now: 0, at: 0 }
    const outcomes = [{ told }, { error: 'STORE_TIMEOUT' }]
    for (const outcome of outcomes) {
      const found = breaches([probe, recordOf(callOf(2, 9 * S, does), outcome)])
      expect(broken(TOUCHED, found)).toMatch('call 2 of p0.0 is degraded (timeout)')
    }
  })
})

it('a call on several keys may be late where its process stood still between the two steps', () => {
  const told: Told = { ...ALLOWED, ...NUMBERS, degraded: 'timeout', now: 0, at: 0 }
  const late = (stills: Member['stills']) => {
    const own = Object.assign(Object.create(member) as Member, { stills })
    const probe = recordOf(callOf(1, 8 * S, 'consume'), { member: own })
    return breaches([probe, recordOf(callOf(2, 9 * S, 'several'), { member: own, told })])
  }
  expect(broken(TOUCHED, late([[9 * S, 9.5 * S]]))).toBeUndefined()
  expect(broken(TOUCHED, late([[7 * S, 8 * S]]))).toMatch('call 2 of p0.0 is degraded (timeout)')
})

describe('a state', () => {
  const five = (from: number, at: number, clock: number): Record[] =>
    Array.from({ length: 5 }, (_, i) => admitted(from + i, at, clock))
  const month = {
    ...PLAN,
    policies: [policy('calendarWindow', { limit: 5, window: 31 * 86_400_000, every: 'month' })],
  }
  const day = Date.UTC(2026, 6, 15) * 1000
  const back = [faultOf("server's clock back", 8 * S, S)]

  it('of a calendar outlasts a clock that is set back', () => {
    const found = breaches([...five(0, 7 * S, day), ...five(5, 9 * S, day - S)], {
      plan: month,
      faults: back,
    })
    expect(broken(PROMISE, found)).toMatch('plain0: 6 units in 0 us, up to call 5')
  })

  it('outlasts one that is set back by less than its longest window, and no other', () => {
    const twice = (by: number) =>
      breaches([...five(0, 7 * S, day), ...five(5, 9 * S, day - by)], { faults: back })
    expect(broken(PROMISE, twice(2 * S))).toBeDefined()
    expect(broken(PROMISE, twice(3 * S))).toBeUndefined()
  })

  it('of a calendar may have expired while the clock stood in the next window', () => {
    const next = admitted(5, 8 * S, day + 31 * 86_400 * S)
    const other = { ...next, call: { ...next.call, key: 'plain1' } }
    const records = [...five(0, 7 * S, day), other, ...five(6, 9 * S, day)]
    expect(broken(PROMISE, breaches(records, { plan: month, faults: back }))).toBeUndefined()
  })

  it('outlasts a restart with its data, and not one without', () => {
    const records = [...five(0, 7 * S, day), ...five(5, 9 * S, day + S)]
    const restarted = (kept: number[]) => breaches(records, { server: { losses: [{ before: 5, kept }] } })
    expect(broken(PROMISE, restarted([0, 1, 2, 3, 4]))).toBeDefined()
    expect(broken(PROMISE, restarted([]))).toBeUndefined()
  })
})

describe('a turn', () => {
  const TOLD = { ...ALLOWED, ...NUMBERS }
  /** The argument of a call on one key under one policy. */
  const argument = (
    operation: keyof typeof OPERATIONS,
    nonce: number,
    token: readonly number[] = [],
  ): Buffer =>
    Buffer.from(new Float64Array([1, nonce, 5, 5, OPERATIONS[operation], 1, 0, 0, ...token]).buffer)
  const execution = (number: number, at: number, args: Buffer): Execution => ({
    ...admitted(number, at, at).execution!,
    args: [args],
  })

  /** A booked turn whose state is lost before it comes, with five units after the loss, and what its process asks meanwhile. */
  const lost = (asked: Buffer): Map<string, string> => {
    const booked = execution(0, 7 * S, argument('book', 77))
    const other = execution(1, 8 * S, asked)
    const turn = recordOf(callOf(0, 7 * S, 'acquire'), {
      told: { ...TOLD, now: booked.clock, at: 9 * S },
      settledAt: 9 * S,
    })
    const others = Array.from({ length: 5 }, (_, i) => admitted(2 + i, 9 * S, 9 * S))
    const executions = [booked, other, ...others.map((each) => each.execution!)]
    return breaches([turn, ...others], { server: { executions, losses: [{ before: 1, kept: [] }] } })
  }

  it('is of the state that booked it where its store could not confirm it', () => {
    expect(broken(PROMISE, lost(argument('consume', 78)))).toBeUndefined()
    expect(broken(PROMISE, lost(argument('confirm', 78, [0, 76])))).toBeUndefined()
  })

  it('is of the state that has confirmed it', () => {
    expect(broken(PROMISE, lost(argument('confirm', 78, [0, 77])))).toMatch('6 units')
  })
})

describe('permits', () => {
  /** So many holders of two permits, under faults. */
  const heldBy = (count: number, faults: readonly Fault[]) => {
    const holds = Array.from({ length: count }, (_, id) => ({
      key: 'permits0',
      id,
      limit: 2,
      from: 9 * S + id,
      until: 10 * S,
    }))
    return breaches([], { members: [Object.assign(Object.create(member) as Member, { holds })], faults })
  }
  const held = (fault: Fault) => heldBy(3, [fault])

  it.each([
    ['provider overloaded', 8 * S, 1.5 * S],
    ['server stopped', 2 * S, 2 * S],
    ['server restarted', 10 * S, S],
    ['process stopped', 8 * S, 0.1 * S],
  ] as const)('are as many as the limit says under a fault that touches none: %s', (fault, at, lasts) => {
    expect(broken(PERMITS, held(faultOf(fault, at, lasts)))).toMatch('3 calls hold one of 2 permits')
  })

  it('of a dead holder are free an hour after a clock was set back, and may not be before', () => {
    const dead = {
      process: { isDead: true },
      holds: [{ key: 'permits0', id: 1, limit: 2, from: 8 * S, until: 9 * S }],
    }
    const denied = (id: number) =>
      breaches([], {
        members: [Object.assign(Object.create(member) as Member, dead)],
        faults: [faultOf("server's clock back", 9 * S, S)],
        late: [recordOf({ ...callOf(id, 17 * S, 'permit'), key: 'permits0' }, {})],
      })
    expect(broken(FREE, denied(20_000))).toBeUndefined()
    expect(broken(FREE, denied(21_000))).toBe('call 21000 got no permit of permits0: denied')
  })

  it.each([
    ['server restarted', 7 * S, S],
    ['server stopped', 7 * S, 2 * S],
    ['process stopped', 7 * S, 2 * S],
  ] as const)('may be held twice after %s', (fault, at, lasts) => {
    expect(broken(PERMITS, held(faultOf(fault, at, lasts)))).toBeUndefined()
  })

  it('may be held three times after two losses', () => {
    const losses = [faultOf('server restarted', 7 * S, S), faultOf("server's clock forward", 8 * S, 60 * S)]
    expect(broken(PERMITS, heldBy(6, losses))).toBeUndefined()
    expect(broken(PERMITS, heldBy(7, losses))).toMatch('7 calls hold one of 6 permits')
    expect(broken(PERMITS, heldBy(5, losses.slice(1)))).toMatch('5 calls hold one of 4 permits')
  })
})
