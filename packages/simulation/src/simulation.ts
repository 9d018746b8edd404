import type { Decision, Limiter } from '@sluice/core'
import { Member, nameOf } from './member.js'
import { type Call, CALLS_UNTIL, type Fault, movedBy, type Plan } from './plan.js'
import type { Program } from './process.js'
import { reserve } from './reserving.js'
import { rule } from './ruling.js'
import { Provider } from './provider.js'
import { send } from './sending.js'
import { type Execution, type Refusal, Server } from './server.js'
import { Twin } from './twin.js'
import { LAG_US, lasting } from './under-faults.js'
import { World } from './world.js'

/** What a caller was told. Instants of answers are those of the clock that decided, in microseconds. */
export interface Told {
  readonly allowed: boolean
  readonly degraded: string | undefined
  readonly reason: string | undefined
  readonly now: number
  readonly at: number
  readonly isCached: boolean
  readonly limit: number
  readonly remaining: number
  /** When the block of its key ends that the answer names, 0 without one. */
  readonly blockedUntil: number
  /** Of a denial: when one unit more than remains passes. */
  readonly nextUnitAt: number
}

/** A call that was made, and what came of it. Instants are those of the world, in microseconds. */
export interface Record {
  readonly call: Call
  readonly member: Member
  readonly startedAt: number
  settledAt: number | undefined
  told: Told | undefined
  error: string | undefined
  /** Whether it failed, and was surely not carried out. */
  isUnsent: boolean
  /** The execution whose reply decided it, where that was heard in the same step. */
  execution: Execution | undefined
  /** The server's clock when it was settled. */
  clock: number
}

/** The records of the store. */
export type Listed = Awaited<ReturnType<Limiter['overrides']>>

/** All that happened in a world. */
export interface History {
  readonly plan: Plan
  readonly twin: Twin
  readonly world: World
  readonly server: Server
  readonly provider: Provider
  readonly members: readonly Member[]
  readonly records: readonly Record[]
  /** The instant of the last fault's end, and calls that were made to see whether the store decides again. */
  readonly calmAt: number
  readonly late: readonly Record[]
  /** Counts of the ledger and of the budget in the end, by key. */
  readonly counted: ReadonlyMap<string, number>
  /** What the store says before that of overrides. */
  readonly listed: Listed | undefined
  /** What was thrown into the loop, or rejected and heard by nobody. */
  readonly stray: readonly string[]
  /** What is left after all was closed. */
  readonly left: readonly string[]
  readonly faults: readonly Fault[]
}

/** After the last fault, the time until the store decides each call. */
const LIVELY_US = 5_000_000
/** After all is closed, the time until nothing of it is left. */
const CLOSED_US = 61_000_000

/** Runs a plan. Everything that happens follows from the plan and the program. */
export async function simulate(plan: Plan, program: Program): Promise<History> {
  const world = new World()
  const fleet = new Fleet(plan, program, world, new Server(world, plan.nodes))
  const hear = (reason: unknown): unknown =>
    fleet.stray.push(String(reason instanceof Error ? reason.stack : reason))
  process.on('unhandledRejection', hear)
  process.on('uncaughtException', hear)
  try {
    return await fleet.run()
  } finally {
    process.off('unhandledRejection', hear)
    process.off('uncaughtException', hear)
  }
}

class Fleet implements History {
  readonly members: Member[] = []
  readonly records: Record[] = []
  readonly late: Record[] = []
  readonly stray: string[] = []
  readonly left: string[] = []
  readonly counted = new Map<string, number>()
  readonly provider: Provider
  readonly faults: Fault[]
  calmAt = 0
  listed: Listed | undefined
  /** The member at each place; undefined while there is none. */
  readonly #places: (Member | undefined)[]
  /** Calls that were made while there was no process at their place. */
  readonly #early: Call[] = []
  /** The instant until which no connection of a place comes about, and by how much all are slower: of processes that begin meanwhile, too. */
  readonly #unreachableUntil: number[]
  #slowness = 0
  #started = 0
  #twin: Twin | undefined

  constructor(
    readonly plan: Plan,
    readonly program: Program,
    readonly world: World,
    readonly server: Server,
  ) {
    this.provider = new Provider(world, plan.latency)
    this.faults = plan.items.filter((item) => item.kind === 'fault')
    this.#unreachableUntil = Array.from({ length: plan.places }, () => 0)
    this.#places = Array.from({ length: plan.places }, (_, place) => this.#start(place, 1))
    world.beforeStep.push(() => {
      for (const { link } of this.members) link.delivered = undefined
    })
  }

  get twin(): Twin {
    return (this.#twin ??= new Twin(this.plan, this.program, this.server))
  }

  async run(): Promise<History> {
    const { plan, world } = this
    for (const item of plan.items) {
      world.after(item.at, undefined, () => (item.kind === 'call' ? this.#call(item) : this.#begin(item)))
    }
    await world.runUntil(CALLS_UNTIL)
    this.calmAt = Math.max(...this.faults.map((fault) => fault.at + lasting(fault)), 0)
    await world.runUntil(this.calmAt)
    for (const member of this.members) member.isCalm = true
    await world.runUntil(Math.max(this.calmAt, CALLS_UNTIL) + LIVELY_US)
    await this.#callLate()
    await this.#holdLate()
    await this.#count()
    await this.#close()
    this.#lookForRest()
    return this
  }

  #start(place: number, factor: number): Member {
    const number = this.#started++
    const seed = this.plan.seed * 7919 + number * 104_729
    const name = `p${place}.${number}`
    const member = new Member(this, name, seed, factor)
    member.slowness = this.#slowness
    member.link.unreachableUntil = this.#unreachableUntil[place]!
    this.members.push(member)
    this.world.trace(`start ${name}`)
    return member
  }

  /** Makes a call in the process of its place, as soon as there is one, and it does not stand still. */
  #call(call: Call): void {
    const member = this.#places[call.place]
    if (!member) return void this.#early.push(call)
    // Wholes that are decided in two steps come in pairs, of which one is later.
    const pair = call.does === 'several' ? [call, { ...call, id: call.id + PAIRED }] : [call]
    this.world.after(0, member.process, () => {
      for (const each of pair) this.#make(each, member, this.records)
    })
  }

  #make(call: Call, member: Member, records: Record[]): void {
    const { world, server } = this
    const outcome = {
      settledAt: undefined,
      told: undefined,
      error: undefined,
      isUnsent: false,
      execution: undefined,
      clock: 0,
    }
    const record: Record = { call, member, startedAt: world.now, ...outcome }
    records.push(record)
    world.trace(`${member.name} ${call.id} ${call.does} ${call.key} ${call.cost}`)
    const settled = (told: Told | undefined, error: string | undefined): void => {
      if (member.process.isDead) return
      Object.assign(record, { settledAt: world.now, told, error, clock: server.clock })
      if (told && !told.degraded && !told.isCached) record.execution = member.link.delivered
      world.trace(`${member.name} ${call.id} -> ${error ?? JSON.stringify(told)}`)
    }
    const other = this.#places[(call.place + 1) % this.plan.places]
    act(call, member, other, this.provider).then(
      (decision) => settled(decision && toldBy(decision, member), undefined),
      (error: { sent?: boolean }) => {
        record.isUnsent = error.sent === false
        settled(undefined, nameOf(error))
      },
    )
  }

  #begin(fault: Fault): void {
    const { world, server } = this
    const member = this.#places[fault.place]
    const node = server.nodes[fault.place % server.nodes.length]!
    world.trace(`fault ${fault.fault} ${fault.lasts} at ${fault.place} ${fault.choice}`)
    const afterwards = (act: () => void): void => void world.after(fault.lasts, undefined, act)
    const refuse = (refusal: Refusal): void => {
      server.refuse(refusal, true)
      afterwards(() => server.refuse(refusal, false))
    }
    switch (fault.fault) {
      case 'server stopped':
        node.stillUntil = Math.max(node.stillUntil, world.now + fault.lasts)
        return
      case 'node dies':
        server.killNode(node)
        return afterwards(() => (node.isDead = false))
      case 'slot moves':
        node.movesUntil = Math.max(node.movesUntil, world.now + fault.lasts)
        return afterwards(() => server.hangUp(node))
      case 'server restarted':
      case 'server fails over':
        return this.#restart(fault)
      case 'server out of memory':
        return refuse('oom')
      case 'server read only':
        return refuse('readonly')
      case 'server busy':
        return refuse('busy')
      case 'scripts flushed':
        return server.flushScripts()
      case 'state broken':
        return server.breakState()
      case "server's clock forward":
      case "server's clock back":
        return server.moveClock(movedBy(fault))
      case 'process stopped':
      case 'process busy':
        return member?.stand(fault.lasts, fault.fault === 'process stopped')
      case 'flood of keys':
        return this.#flood(fault)
      case 'long turn':
        return member && this.#turnLong(member, fault)
      case 'process killed':
        this.#replace(fault.place, fault.lasts, 1)
        return
      case 'processes replaced':
        for (const place of this.#places.keys()) {
          const wait = (fault.lasts * place) / this.plan.places
          world.after(wait, undefined, () => this.#replace(place, 1000, this.plan.factor))
        }
        return
      case 'connection lost':
        return member?.link.break('lost', fault.choice)
      case 'half-open to':
      case 'half-open from':
        return member && this.#halfOpen(member, fault)
      case 'unreachable':
        for (const place of fault.choice ? this.#places.keys() : [fault.place])
          this.#cutOff(place, fault.lasts)
        return
      case 'provider lowers its limit':
      case 'provider overloaded':
      case 'provider silent':
        return this.provider.begin(fault)
      case 'slow network':
        this.#slow(slownessOf(fault))
        afterwards(() => this.#slow(-slownessOf(fault)))
    }
  }

  #slow(by: number): void {
    this.#slowness += by
    for (const each of this.members) each.slowness = this.#slowness
  }

  #cutOff(place: number, lasts: number): void {
    const until = Math.max(this.#unreachableUntil[place]!, this.world.now + lasts)
    this.#unreachableUntil[place] = until
    const link = this.#places[place]?.link
    if (!link) return
    link.unreachableUntil = until
    link.break('unreachable')
  }

  /** Kills the server and starts it again: empty, as it was saved a moment before, which it reads for half of the time, or as a replica that lags has it. */
  #restart({ fault, lasts, choice }: Fault): void {
    const { world, server } = this
    if (server.isDead) return
    const isEmpty = fault === 'server restarted' && choice
    const loads = fault === 'server restarted' && !choice
    const kill = (): void => {
      if (server.isDead) return
      server.kill()
      world.after(loads ? lasts / 2 : lasts, undefined, () => {
        server.start(isEmpty)
        world.trace(`server started ${isEmpty}`)
        if (!loads) return
        server.refuse('loading', true)
        world.after(lasts / 2, undefined, () => server.refuse('loading', false))
      })
    }
    server.save()
    if (fault === 'server fails over') world.after(LAG_US, undefined, kill)
    else kill()
  }

  #replace(place: number, pause: number, factor: number): void {
    const member = this.#places[place]
    if (!member) return
    member.kill()
    this.world.trace(`kill ${member.name}`)
    this.#places[place] = undefined
    this.world.after(pause, undefined, () => {
      this.#places[place] = this.#start(place, factor)
      for (const call of this.#early.splice(0)) this.#call(call)
    })
  }

  /** Makes calls in a turn of the event loop that then goes on for long; some are more than may be on their way at once. */
  #turnLong(member: Member, { id, at, place, lasts, choice }: Fault): void {
    const calls = choice && place < 2 ? 1200 : 5
    this.world.after(0, member.process, () => {
      for (let i = 0; i < calls; i++) {
        const call = callOf(30_000 + 2000 * id + i, at, place, 'consume', `turn${i}`)
        this.#make(call, member, this.records)
      }
      member.stand(lasts, false)
    })
  }

  /** Makes calls on keys that nobody else uses, everywhere or at one place, of which some ask for more than ever fits. */
  #flood({ id, at, place, lasts, choice }: Fault): void {
    for (let i = 0; i < FLOOD; i++) {
      const where = choice ? i % this.plan.places : place
      const call = callOf(100_000 + 1000 * id + i, at, where, 'consume', `flood${id}-${i}`)
      const cost = i % 10 === 0 ? 1_000_000 : 1
      this.world.after((lasts * i) / FLOOD, undefined, () => this.#call({ ...call, cost }))
    }
  }

  /** Has messages of one direction vanish. The connection is found dead in the end, also by a client that does not watch it. */
  #halfOpen({ link, process }: Member, { fault, lasts, choice }: Fault): void {
    const until = this.world.now + lasts
    if (fault === 'half-open to') link.lost.to = Math.max(link.lost.to, until)
    else link.lost.from = Math.max(link.lost.from, until)
    this.world.after(lasts, process, () => link.break('found dead', choice))
  }

  /** Calls of each process on keys of its own, to see who decides them. */
  async #callLate(): Promise<void> {
    const { world } = this
    for (const [place, member] of this.#places.entries()) {
      for (let i = 0; i < 7 && member; i++) {
        const id = 10_000 + place * 10 + i
        const [does, key] =
          i < 3
            ? (['consume', `late${id}`] as const)
            : i < 6
              ? (['ledger', `ledger${i - 2}`] as const)
              : (['send', 'provider'] as const)
        const call = callOf(id, world.now, place, does, key)
        // While the circuit is open only calls probe, so nobody is told anything by the first.
        const records = i === 0 ? [] : this.late
        world.after(i * 300_000, member.process, () => this.#make(call, member, records))
      }
    }
    await world.runUntil(world.now + 2_000_000)
    const member = this.#places.find((each) => each !== undefined)
    member?.ledger.overrides().then(
      (listed) => (this.listed = listed),
      (error: unknown) => this.stray.push(`overrides cannot be listed: ${String(error)}`),
    )
  }

  /** Asks for permits of each key, which nobody holds any more, and once more an hour later if there was none. */
  async #holdLate(): Promise<void> {
    const { world, server } = this
    const granted = (): number => this.members.reduce((sum, { holds }) => sum + holds.length, 0)
    const before = granted()
    const asked = await this.#hold(FIRST_LATE_HOLD)
    if (granted() - before === asked) return
    server.moveClock(HOUR_US)
    world.trace('an hour passes')
    await this.#hold(HOUR_LATE_HOLD)
  }

  /** Asks for as many permits of each key as there are, by calls from a number on, and returns how many that are. */
  async #hold(from: number): Promise<number> {
    const { world } = this
    const [place, member] = [...this.#places.entries()].find(([, each]) => each !== undefined)!
    const calls = 2 * member!.permits
    for (let i = 0; i < calls; i++) {
      const call = { ...callOf(from + i, world.now, place, 'permit', `permits${i % 2}`), holds: 3000 }
      world.after(i * 1000, member!.process, () => this.#make(call, member!, this.late))
    }
    await world.runUntil(world.now + LIVELY_US)
    return calls
  }

  /** Asks what the keys of the ledger and of the budget count. */
  async #count(): Promise<void> {
    const { counted } = this
    const member = this.#places.find((each) => each !== undefined)
    const keys = new Set(this.records.map(({ call }) => call.key))
    for (const key of keys) {
      const limiter = key.startsWith('ledger') ? member?.ledger : key.startsWith('budget') && member?.budget
      if (!limiter) continue
      const isLedger = limiter === member?.ledger
      const cleared = isLedger ? limiter.removeOverride(key) : Promise.resolve()
      cleared
        .then(() => limiter.peek(key))
        .then(
          ({ policies }) => counted.set(key, policies[0]?.used ?? NaN),
          (error: unknown) => this.stray.push(`${key} cannot be read: ${String(error)}`),
        )
    }
    await this.world.runUntil(this.world.now + 2_000_000)
  }

  async #close(): Promise<void> {
    const { world } = this
    for (const member of this.#places) {
      if (!member) continue
      world.after(0, member.process, () => {
        member.close().catch((error: unknown) => this.stray.push(`close: ${String(error)}`))
      })
    }
    await world.runUntil(world.now + CLOSED_US)
  }

  #lookForRest(): void {
    for (const member of this.#places) {
      if (!member) continue
      const { name, process, link } = member
      const timers = [...process.timers].filter((timer) => timer.isRef)
      if (timers.length > 0) this.left.push(`${name}: ${timers.length} timers, of ${timers[0]!.ms} ms`)
      if (link.unanswered > 0) this.left.push(`${name}: ${link.unanswered} calls`)
      if (link.subscriptions > 0) this.left.push(`${name}: ${link.subscriptions} subscriptions`)
    }
  }
}

/** The numbers of the calls that ask in the end for permits that nobody holds, and of those an hour later, when each is lost. */
const FIRST_LATE_HOLD = 20_000
export const HOUR_LATE_HOLD = 21_000
const HOUR_US = 3_600_000_000

/** By how much a slow network delays each message, in microseconds. */
function slownessOf({ lasts }: Fault): number {
  return 10_000 + (lasts % 80_000)
}

/** The keys of a flood. */
const FLOOD = 150

/** The numbers of the second calls of pairs are larger by this, which makes them calls of the same kind on the same keys. */
const PAIRED = 48_000

/** A call without more to it. */
function callOf(id: number, at: number, place: number, does: Call['does'], key: string): Call {
  const none = { cost: 1, units: 0, maxWait: 0, hangsUp: undefined, holds: 1 }
  return { kind: 'call', id, at, place, does, key, ...none }
}

function toldBy(decision: Decision, member: Member): Told {
  // That of a permit has none.
  const answer = decision[member.process.core.ANSWER] ?? { now: 0, at: 0, remaining: 0 }
  const { now, at, from, remaining, nextUnitAt = now, blockedUntil = 0 } = answer
  const { allowed, degraded, reason, limit } = decision
  const isCached = from === 'cache'
  return { allowed, degraded, reason, now, at, isCached, remaining, nextUnitAt, limit, blockedUntil }
}

/** The key of the ledger that a call on two keys charges: none that is ever exempt. */
export function ledgerOf({ id }: Call): string {
  return `ledger${id % 3}`
}

/** Waits for a permit, holds it for a while, and releases it. */
async function hold(call: Call, member: Member, world: World): Promise<void> {
  const permit = await member.semaphore.acquire(call.key, { maxWait: call.maxWait })
  if (permit.allowed) holdFor(call, call.key, member, world, () => permit.release())
}

function holdFor(call: Call, key: string, member: Member, world: World, release: () => Promise<void>): void {
  const held = { key, id: call.id, limit: member.permits, from: world.now, until: Infinity }
  member.holds.push(held)
  world.trace(`permit ${call.id}`)
  world.after(call.holds * 1000, member.process, () => {
    held.until = Math.min(held.until, world.now)
    void release()
  })
}

/** Decides a call on several keys in two steps, as one is of this process, and half of them with a permit that is held for a while. */
async function several(call: Call, member: Member, world: World): Promise<Decision> {
  const { ledger, own, semaphore, process } = member
  const keys = [
    { limiter: ledger, key: ledgerOf(call) },
    { limiter: own, key: 'own' },
  ]
  const permit = { semaphore, key: `permits${call.cost % 2}` }
  const whole = await process.core.consumeAll(hasPermit(call) ? [permit, ...keys] : keys)
  if (whole.permits.length > 0) holdFor(call, permit.key, member, world, () => whole.release())
  return whole.denied ?? whole.decisions[0]!
}

/** Whether a call on several keys takes a permit too. */
export function hasPermit({ id }: Call): boolean {
  return id % 2 === 0
}

/** Does what a call says. Resolves to its decision, if it has one. */
async function act(
  call: Call,
  member: Member,
  other: Member | undefined,
  provider: Provider,
): Promise<Decision | undefined> {
  const { limiter, ledger, process, world } = member
  const { key, cost } = call
  switch (call.does) {
    case 'consume':
      return limiter.consume(key, { cost })
    case 'tier':
      return limiter.consume(key, member.tier && { policies: member.tier })
    case 'peek':
      return limiter.peek(key, { cost })
    case 'ledger':
      return ledger.consume(key)
    case 'settle': {
      const decision = await limiter.consume(key, { cost })
      const settle = (): void =>
        void decision.settle(call.units).catch((error: unknown) => member.failed(call, error))
      if (decision.allowed) world.after(call.holds * 1000, process, settle)
      return decision
    }
    case 'acquire': {
      const caller = new AbortController()
      if (call.hangsUp !== undefined) {
        world.after(call.hangsUp * 1000, process, () => caller.abort(new Error('hung up')))
      }
      return limiter.acquire(key, { cost, maxWait: call.maxWait, signal: caller.signal })
    }
    case 'permit':
      await hold(call, member, world)
      return undefined
    case 'both': {
      const parts = [
        { limiter, key, cost },
        { limiter: ledger, key: ledgerOf(call) },
      ]
      const { decisions } = await process.core.consumeAll(parts)
      return decisions.find(({ allowed }) => !allowed) ?? decisions[0]
    }
    case 'several':
      return several(call, member, world)
    case 'refund':
      await limiter.refund(key, { cost })
      return undefined
    case 'reset':
      await limiter.reset(key)
      return undefined
    case 'block':
      await limiter.block(key, call.maxWait + 1)
      return undefined
    case 'rule':
      await rule(call, member)
      return undefined
    case 'send':
      await send(call, member, provider)
      return undefined
    case 'reserve':
      return reserve(call, member, other)
  }
}
