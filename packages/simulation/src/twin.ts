import type { Policy } from '@sluice/core'
import { PERMIT_STEPS, type PermitHolder, type PermitQueues, TICKET_STATES } from '@sluice/core/internal'
import type { Answer, Booking, Keyspace, Penalty, Store } from '@sluice/core/store'
import {
  NumberReader,
  OPERATIONS,
  unpackAnswer,
  unpackAnswers,
} from '../../core/src/stores/redis/script/wire.js'
import { LEDGER, policyOf, TIER } from './member.js'
import type { Plan } from './plan.js'
import { EVENLY } from './provider.js'
import { Process, type Program } from './process.js'
import { type Execution, partsOfKey, type Server } from './server.js'
import { World } from './world.js'

/** One call on a key, as its argument says it. */
export interface KeyCall {
  readonly operation: keyof typeof OPERATIONS
  readonly cost: number
  readonly nonce: number
  /** Limit and capacity of each policy. */
  readonly numbers: readonly number[]
  readonly count: number
  readonly span: number
  readonly token: Buffer
  readonly clock: number
  /** Of a release that took effect under some policies alone: whether the server has written is not known. */
  readonly isDoubtful?: boolean
}

const NAMES = Object.keys(OPERATIONS) as (keyof typeof OPERATIONS)[]

/**
 * The states that the server keeps, each once more in a store in memory, which carries out the same calls at the same instants:
 * every answer is the same, to the microsecond.
 */
export class Twin {
  readonly #core: Process['core']
  readonly #lists: ReadonlyMap<string, readonly Policy[]>
  readonly #tier: readonly Policy[]
  readonly #penalty: Penalty | undefined
  #keys = new Map<string, TwinKey>()
  #permits = new Map<string, TwinPermits>()
  /** Where answers differ, and how many were compared. */
  readonly differences: string[] = []
  compared = 0
  /** Whether there is none: calls on a calendar bring boundaries, which it does not read. */
  readonly isBlind: boolean
  /** Units that each execution has charged, by key, and bookings that were made by process and key. */
  readonly charged = new Map<number, (readonly [key: string, units: number])[]>()
  readonly booked = new Map<string, number>()

  constructor(plan: Plan, program: Program, server: Server) {
    const process = processOf(program)
    this.#core = process.core
    const year = [process.core.fixedWindow({ limit: LEDGER, window: '365d' })]
    const api = plan.policies.map((spec) => policyOf(process, spec, 1))
    this.#lists = new Map([
      ['api', api],
      ['ledger', year],
      ['turns', [process.core.gcra(EVENLY)]],
    ])
    this.#tier = [process.core.fixedWindow(TIER)]
    const { penalty } = plan.extras
    if (penalty) {
      const { after, factor, then, block, maxBlock, forgetAfter } = penalty
      const us = { block: block * 1000, maxBlock: maxBlock * 1000, forgetAfter: forgetAfter * 1000 }
      this.#penalty = { after, factor, ...us, ...(then === 'fresh' && { then }) }
    }
    this.isBlind = plan.policies.some(({ shape }) => 'onlyWindow' in shape.model)
    if (!this.isBlind) this.#replay(server)
  }

  /** Carries out what a server has, and notes where its answers differ. */
  #replay({ executions, losses, refusedFrom }: Server): void {
    const lost = [...losses]
    for (const execution of executions) {
      if (execution.number >= refusedFrom) for (const each of this.#permits.values()) each.isUnknown = true
      while (lost[0] && lost[0].before <= execution.number) {
        this.#keys = new Map()
        this.#permits = new Map()
        for (const number of lost.shift()!.kept) Array.from(this.#carryOut(executions[number]!))
      }
      for (const difference of this.#carryOut(execution)) {
        this.compared++
        if (difference !== undefined)
          this.differences.push(`run ${execution.number} of ${execution.process}: ${difference}`)
      }
    }
  }

  *#carryOut(execution: Execution): Iterable<string | undefined> {
    const { keys, args, reply, script, process } = execution
    const { limiter, shapes } = partsOfKey(keys[0]!)
    if (shapes === 'semaphore') {
      const permits = this.#permits.get(keys[0]!) ?? new TwinPermits(this.#core)
      this.#permits.set(keys[0]!, permits)
      return yield permits.differs(execution)
    }
    if (limiter === undefined || !this.#lists.has(limiter)) return
    if (script.decidesWholes) return yield* this.#carryOutWholes(execution)
    const packed = Array.isArray(reply) ? new NumberReader(reply[0], true) : undefined
    const others = Array.isArray(reply) ? reply.slice(1) : [reply as Buffer]
    for (const [i, name] of keys.entries()) {
      const twin = this.#keyOf(name)
      const { policies } = twin
      const call = { ...callOf(args[i] ?? args.at(-1)!, policies.length), clock: execution.clock }
      let isRefused = false
      if (packed && !packed.passMark()) {
        const answers = Array.from({ length: call.count }, () => packed.passed(policies.length))
        yield twin.compare(call, answers)
      } else {
        isRefused = others[0]![0] === FAILED
        yield twin.compareReply(call, others.shift())
      }
      const { limiter: own, key, shapes: list } = partsOfKey(name)
      if (own === 'turns' || list === this.#tier[0]!.shape) continue
      const charged = this.charged.get(execution.number)
      if (charged) charged.push([key!, twin.chargedLast])
      else this.charged.set(execution.number, [[key!, twin.chargedLast]])
      const id = `${process} ${key}`
      if (call.operation === 'book' && !isRefused) this.booked.set(id, (this.booked.get(id) ?? 0) + 1)
    }
  }

  *#carryOutWholes({ keys, args, clock, reply }: Execution): Iterable<string | undefined> {
    const [header, ...others] = [reply].flat() as Buffer[]
    const packed = new NumberReader(header!, true)
    let [next, argument] = [0, args[0]!]
    for (let whole = 0; next < keys.length; whole++) {
      if (args[whole]?.length) argument = args[whole]!
      const numbers = doublesOf(argument)
      const [length, isPlain] = [Math.abs(numbers[0]!), numbers[0]! > 0]
      let at = isPlain ? 1 : 3
      const parts = keys.slice(next, (next += length)).map((name) => {
        const twin = this.#keyOf(name)
        const { policies } = twin
        const [, cost, nonce, ...rest] = numbers.slice(at) as [number, number, number]
        at += 3 + 2 * policies.length
        return { twin, key: KEY, cost, nonce, numbers: rest.slice(0, 2 * policies.length), enforce: true }
      })
      for (const part of isPlain ? [] : parts) {
        part.enforce = numbers[at] === 1
        at += 1 + part.numbers.length / 2
      }
      const own = packed.passMark() ? others.shift()! : undefined
      if (own?.[0] === FAILED) continue
      const answers = this.#core.decideAtOnce(
        parts.map((part) => ({ ...part, keyspace: part.twin.at(clock, part.numbers) })),
      )
      let from = 0
      const got = parts.map(({ twin: { policies }, cost }) => {
        const reader = own && own.subarray(from + 8, (from += 8 + own.readDoubleLE(from)))
        return reader
          ? unpackAnswer(reader, { operation: 'consume', cost, policies }, '')
          : packed.passed(policies.length)
      })
      const isDenied = (all: readonly Answer[]): boolean =>
        all.some(({ reason }, i) => reason !== undefined && parts[i]!.enforce)
      // A part that is not known may have decided for the others.
      if (parts.some(({ twin }) => twin.isUnknown) && isDenied(got) !== isDenied(answers))
        for (const { twin } of parts) twin.isUnknown = true
      for (const [i, { twin, numbers, cost, nonce }] of parts.entries()) {
        const call = { ...PLAIN, cost, nonce, numbers, clock }
        const { reason } = answers[i]!
        if (reason === undefined ? !isDenied(answers) : twin.penalty && reason === 'limit') twin.wrote(call)
        yield twin.differs(call, got[i]!, answers[i]!)
      }
    }
  }

  #keyOf(name: string): TwinKey {
    const known = this.#keys.get(name)
    if (known) return known
    const { limiter, shapes = '' } = partsOfKey(name)
    // Leases lengthen windows.
    const windows = shapes.split(',').map((shape) => `${shape.split('/')[1]!}ms` as const)
    const list = shapes === this.#tier[0]!.shape ? this.#tier : this.#lists.get(limiter!)!
    const policies = list.map((policy, i) => policy.with({ window: windows[i]! }))
    const twin = new TwinKey(name, this.#core, policies, limiter === 'api' ? this.#penalty : undefined)
    this.#keys.set(name, twin)
    return twin
  }
}

/** The process whose stores in memory are the twins of all worlds of a program: what they do depends on nothing but their calls. */
function processOf(program: Program): Process {
  const process = processes.get(program) ?? new Process(new World(), 'twin', program, 1, 0)
  processes.set(program, process)
  return process
}
const processes = new WeakMap<Program, Process>()

/** How bookings stand, by the number that scripts reply. */
const CONFIRMED = ['stands', 'lost', '', '', 'held']
const PLAIN = { operation: 'consume', count: 1, span: 0, token: Buffer.alloc(0) } as const
/** The first byte of the reply to a call that failed, and was not carried out. */
const FAILED = 33
const KEY = 'k'

/** One key's state. */
class TwinKey {
  #store: Store
  #clock = 0
  readonly #keyspaces = new Map<string, Keyspace>()
  readonly #bookings = new Map<number, Booking>()
  /** What has written it since it began. */
  #written: KeyCall[] = []
  /** What had written the state that is gone as the clock was set back: peeks leave it, and it counts again once the clock has come near. */
  #left: KeyCall[] = []
  readonly #longest: number
  /** Units that its latest call was charged. */
  chargedLast = 0
  /** The keyspace of the latest call. */
  #latest: Keyspace | undefined
  /** When a call may have written it: whether a correction without effect does is known to the server alone. */
  #doubtful = 0
  /** Whether it may have expired when it was full under larger limits than those of its latest call. */
  isUnknown = false

  constructor(
    readonly name: string,
    readonly core: Process['core'],
    readonly policies: readonly Policy[],
    readonly penalty: Penalty | undefined,
  ) {
    this.#longest = Math.max(...policies.map(({ window }) => window))
    this.#store = this.#open()
  }

  #open(): Store {
    this.#keyspaces.clear()
    this.#bookings.clear()
    this.#latest = undefined
    this.#doubtful = 0
    return (this.#store = this.core.memoryStore({ clock: () => this.#clock }))
  }

  /**
   * The keyspace under these limits and capacities, at an instant. Where the server's clock stands behind the last write by less than
   * the longest window, time stands still; by more, the state is gone.
   */
  at(clock: number, numbers: readonly number[], isPeek = false): Keyspace {
    const isAgain = this.#left.length > 0 && latestOf(this.#left) - clock < this.#longest
    if (clock < this.#clock || isAgain) {
      if (this.#doubtful > latestOf(this.#written)) this.isUnknown = true
      const written = isAgain ? this.#left : this.#written
      ;[this.#written, this.#left] = [[], []]
      this.#open()
      if (latestOf(written) - clock >= this.#longest) this.#left = written
      else for (const call of written) this.#carryOut(call)
    }
    if (!isPeek) this.#left = []
    this.#clock = clock
    const id = numbers.join()
    let keyspace = this.#keyspaces.get(id)
    if (!keyspace) {
      const policies = this.policies.map((policy, i) =>
        policy.with({ limit: numbers[2 * i]!, capacity: numbers[2 * i + 1]! }),
      )
      keyspace = this.#store.keyspace('twin', policies, () => {}, this.penalty)
      this.#keyspaces.set(id, keyspace)
    }
    if (this.#latest && this.#latest !== keyspace && this.#written.length > 0) {
      const { resetAt } = this.#latest.decide('peek', KEY, 0, 0) as Answer
      if (resetAt <= clock) this.isUnknown = true
    }
    return (this.#latest = keyspace)
  }

  wrote(call: KeyCall): void {
    this.#written.push(call)
  }

  /** Notes a correction. Without effect it is doubtful whether it has written. */
  #wroteIf(call: KeyCall, effect: number): number {
    if (effect === 0) this.#doubtful = call.clock
    this.wrote(effect === 0 ? { ...call, isDoubtful: true } : call)
    return effect
  }

  /** Carries a call out, and returns its answers, or the units that took effect. */
  #carryOut(call: KeyCall): readonly Answer[] | number {
    const { operation, cost, nonce, count, span, token } = call
    const keyspace = this.at(call.clock, call.numbers, operation === 'peek')
    this.chargedLast = 0
    const key = KEY
    switch (operation) {
      case 'consume':
      case 'peek':
      case 'try':
      case 'book':
      case 'commit': {
        const answers: Answer[] = []
        for (let i = 0; i < count; i++) answers.push(keyspace.decide(operation, key, cost, span) as Answer)
        const { booking, reason } = answers[0]!
        const isCharging = operation === 'consume' || operation === 'book' || operation === 'commit'
        if (isCharging && this.isUnknown) this.chargedLast = Infinity
        else if (isCharging)
          this.chargedLast = cost * answers.filter((each) => each.reason === undefined).length
        if (booking) this.#bookings.set(nonce, booking)
        const isCharged = operation !== 'peek' && operation !== 'try' && reason === undefined
        const isCounted = operation !== 'peek' && operation !== 'commit' && this.penalty && reason === 'limit'
        if (cost > 0 && (isCharged || isCounted)) this.wrote(call)
        return answers
      }
      case 'confirm': {
        const booking = this.#bookings.get(token.readDoubleLE(8))
        if (!this.#isKnown(booking, call)) return NaN
        return CONFIRMED.indexOf(keyspace.confirm(booking) as string)
      }
      case 'cancel': {
        const booking = this.#bookings.get(token.readDoubleLE(8))
        if (!this.#isKnown(booking, call)) return NaN
        this.wrote(call)
        return keyspace.cancel(booking) ? 1 : 0
      }
      case 'release': {
        const [at, charged, decidedAt] = doublesOf(token) as [number, number, number]
        // Of a state that was lost as the clock was set back.
        if (decidedAt > latestOf(this.#written)) return 0
        const charge = { at, cost: charged, decidedAt }
        return this.#wroteIf(call, keyspace.correct({ kind: operation, key, charge, units: cost }) as number)
      }
      case 'refund':
      case 'charge':
        return this.#wroteIf(call, keyspace.correct({ kind: operation, key, cost }) as number)
      case 'block':
      case 'hold':
        // To end what does not exist makes no state.
        if (span > 0 || this.#written.length > 0) this.wrote(call)
        return keyspace.correct({ kind: operation, key, duration: span, isPenalty: cost === 1 }) as number
      case 'reset':
        this.#written = []
        this.#open()
        return 0
      case 'reserve':
      case 'change':
        throw new Error(`the twin has no ${operation}`)
    }
  }

  /** Whether a booking was made in this state, which cannot have expired since as one that is full again. */
  #isKnown(booking: Booking | undefined, { clock }: KeyCall): booking is Booking {
    return booking !== undefined && booking.at + this.#longest >= clock
  }

  /** Carries a call out, and says where the server's reply differs. */
  compareReply(call: KeyCall, reply: Buffer): string | undefined {
    this.chargedLast = 0
    if (reply[0] === FAILED) return undefined
    if (OPERATIONS[call.operation] <= OPERATIONS.commit) {
      const { policies } = this
      const one = (): Answer[] => [unpackAnswer(reply, { ...call, policies }, this.name)]
      return this.compare(call, call.count > 1 ? unpackAnswers(reply, policies, call.count) : one())
    }
    const expected = this.#carryOut(call)
    if (call.operation === 'reset' || Number.isNaN(expected) || this.isUnknown) return undefined
    const got = reply.readDoubleLE(call.operation === 'confirm' ? 0 : 16)
    if (call.operation === 'cancel' ? expected === 0 || got === 1 : got === expected) return undefined
    return `${call.operation} ${this.name}: ${got}, and in memory ${expected as number}`
  }

  compare(call: KeyCall, answers: readonly Answer[]): string | undefined {
    const expected = this.#carryOut(call) as readonly Answer[]
    return answers.map((answer, i) => this.differs(call, answer, expected[i]!)).find(Boolean)
  }

  differs({ operation, cost, numbers }: KeyCall, answer: Answer, expected: Answer): string | undefined {
    if (this.isUnknown || isSame(answer, expected)) return undefined
    const [got, wanted] = [told(answer), told(expected)]
    if (got === wanted) return undefined
    return `${operation} ${cost} of ${this.name} under ${numbers.join()}: ${got}, and in memory ${wanted}`
  }
}

/** The instant of the last of some writes; while time stands still, that at which it does. */
function latestOf(written: readonly KeyCall[]): number {
  return Math.max(0, ...written.map(({ clock, isDoubtful }) => (isDoubtful ? 0 : clock)))
}

/** The permits of one key. */
class TwinPermits {
  #queues: PermitQueues
  readonly #holders = new Map<string, PermitHolder>()
  /** Until when semaphores count as alive, and until when a time of grace lasts. */
  readonly #alive = new Map<string, number>()
  /** The tickets that have asked, with their semaphore. */
  readonly #known = new Set<string>()
  #clock = 0
  /** Whether the server has refused steps, or its clock was set back: what is left then is not known. */
  isUnknown = false

  constructor(readonly core: Process['core']) {
    this.#queues = new core.PermitQueues(() => this.#clock)
  }

  /** Carries a step out, and says where the server's reply differs. */
  differs({ args, clock, reply, keys, isFull }: Execution): string | undefined {
    const argument = args[0]!
    const [number, limit, lease, claim, alive, grace] = doublesOf(argument) as [
      number,
      number,
      number,
      number,
      number,
      number,
    ]
    this.isUnknown ||= clock < this.#clock
    if (clock >= this.#clock + lease + claim + alive + 1_000_000) this.#expire()
    this.#clock = clock
    const words = argument.subarray(56).toString().split('\n')
    const semaphore = words[1]!
    const tickets = words.slice(2).map((word) => Number(word.slice(semaphore.length + 1)))
    const step = PERMIT_STEPS[number]!
    const isNew = !this.#known.has(argument.subarray(56).toString())
    this.#known.add(argument.subarray(56).toString())
    if (isFull && isNew && (step === 'take' || step === 'wait') && /[12]/.test(reply.toString()))
      return `${step} ${tickets.join()} of ${keys[0]} under ${limit}: ${reply.toString()}, without memory`
    if ((step === 'poll' || step === 'renew') && this.#isAbsent(clock)) {
      this.#queues.stateWasLost()
      this.#alive.set('grace', clock + grace)
    }
    // Tickets of a semaphore that was not alive may have left the queue, here and there at another step.
    if (step === 'poll' && !((this.#alive.get(semaphore) ?? 0) > clock)) this.isUnknown = true
    if (step === 'poll' || step === 'wait') this.#alive.set(semaphore, clock + alive)
    const holder = this.#holders.get(semaphore) ?? { tickets: new Map(), granted() {} }
    this.#holders.set(semaphore, holder)
    const call = { step, semaphore: 0, name: 'permits', key: KEY, tickets, limit, lease }
    const expected = this.#queues.carryOut(holder, call).map((state) => TICKET_STATES.indexOf(state))
    const got = reply.toString()
    if (this.isUnknown || got === expected.join('')) return undefined
    return `${step} ${tickets.join()} of ${keys[0]} under ${limit}: ${got}, and in memory ${expected.join('')}`
  }

  #expire(): void {
    this.#queues = new this.core.PermitQueues(() => this.#clock)
    this.#holders.clear()
    this.#alive.clear()
  }

  /** Whether the server has nothing of the key any more. */
  #isAbsent(clock: number): boolean {
    const tickets = [...this.#holders.values()].flatMap((holder) =>
      [...holder.tickets.values()].flatMap((each) => [...each.values()]),
    )
    const isHeld = tickets.some(({ until, waitsWith }) => until > clock || waitsWith)
    return !isHeld && ![...this.#alive.values()].some((until) => until > clock)
  }
}

/** Whether two answers are equal in all that callers are told. */
function isSame(a: Answer, b: Answer): boolean {
  return (
    a.now === b.now &&
    a.at === b.at &&
    a.reason === b.reason &&
    a.binding === b.binding &&
    a.remaining === b.remaining &&
    a.resetAt === b.resetAt &&
    a.blockedUntil === b.blockedUntil &&
    a.parts?.length === b.parts?.length &&
    (!a.parts || a.parts.every((number, i) => number === b.parts![i]))
  )
}

/** What callers are told of an answer; of a turn ahead not when it was booked, which while time stands still is not the same. */
function told({ now, at, reason, binding, remaining, resetAt, parts, blockedUntil }: Answer): string {
  const from = reason === undefined && at > now ? undefined : now
  return JSON.stringify({ now: from, at, reason, binding, remaining, resetAt, parts, blockedUntil })
}

function doublesOf(bytes: Buffer): number[] {
  const doubles: number[] = []
  for (let at = 0; at + 8 <= bytes.length; at += 8) doubles.push(bytes.readDoubleLE(at))
  return doubles
}

/** Reads the argument of a call on one key under so many policies. */
export function callOf(argument: Buffer, policies: number): Omit<KeyCall, 'clock'> {
  const [cost, nonce, ...rest] = doublesOf(argument) as [number, number, ...number[]]
  const numbers = rest.slice(0, 2 * policies)
  const [operation = 1, count = 1, , span = 0] = rest.slice(2 * policies)
  const token = argument.subarray((6 + 2 * policies) * 8)
  return { operation: NAMES[operation - 1]!, cost, nonce, numbers, count, span, token }
}
