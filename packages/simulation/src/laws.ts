import { CLAIM_US } from '@sluice/core/internal'
import { type Rule, ruleOf } from '@sluice/testing/internal'
import { CONDUCT } from './conduct.js'
import { grouped, type Law, recordsOn, runsOn } from './law.js'
import { type Deed, LEASE_MS, type Member, MOST_OPEN, type Reserved } from './member.js'
import { type Call, movedBy, type Plan, type PolicySpec, scaled } from './plan.js'
import { ttlOf } from './reserving.js'
import { listedLimit, wrongRule } from './in-force.js'
import { ALLOWED, ATTEMPTS, isUrgent } from './provider.js'
import { BANNED } from './banned.js'
import { PAUSING } from './pausing.js'
import { type Execution, partsOfKey } from './server.js'
import { hasPermit, type History, HOUR_LATE_HOLD, ledgerOf, type Record } from './simulation.js'
import { callOf, type KeyCall } from './twin.js'
import {
  disturbs,
  isClockMoved,
  isClockSetBack,
  isDisturbed,
  isUnder,
  losesData,
  under,
} from './under-faults.js'

export const LAWS: readonly Law[] = [
  ...CONDUCT,
  ...PAUSING,
  ...BANNED,
  {
    name: 'each answer of the server is that of a store in memory, to the microsecond',
    source: 'Same trace, same answers in memory and in Redis',
    breaches({ twin }, count) {
      count(twin.compared)
      return twin.differences
    },
  },
  {
    name: 'what the server admits keeps the promise of each policy in every span, as long as a state lasts',
    source: 'what each one guarantees',
    *breaches(history, count) {
      if (history.plan.extras.leases && isClockMoved(history)) return
      const admitted = decided(history, isAdmitted).filter(({ told }) => !told!.degraded)
      for (const [key, records] of grouped(admitted, ({ call }) => call.key)) {
        const charges = chargesOf(records, history)
        for (const spec of history.plan.policies) {
          for (const state of statesOf(charges, spec, history))
            yield* beyond(key, state, spec, history, count)
        }
      }
    },
  },
  {
    name: 'what a process admits in an outage keeps the promise too',
    source: "`'local'` (default)",
    *breaches(history, count) {
      if (history.plan.onStoreError !== 'local') return
      const admitted = decided(history, isAdmitted).filter(({ told }) => told!.degraded)
      for (const [key, records] of grouped(admitted, ({ member, call }) => `${member.name} ${call.key}`)) {
        const charges = chargesOf(records, history)
        for (const spec of history.plan.policies) yield* beyond(key, charges, spec, history, count)
      }
    },
  },
  {
    name: 'each failure mode answers as it says',
    source: 'onStoreError',
    *breaches({ plan, records }, count) {
      for (const { call, told } of records) {
        if (OWN_MODE.has(call.does) || !told?.degraded) continue
        count(1)
        const { allowed, reason } = told
        const isWrong =
          (plan.onStoreError === 'deny' && allowed) ||
          (plan.onStoreError === 'throw' && reason !== 'cost') ||
          (plan.onStoreError === 'allow' && !allowed && reason !== 'blocked' && reason !== 'cost')
        if (isWrong) yield `${plan.onStoreError}: call ${call.id} got ${JSON.stringify(told)}`
      }
    },
  },
  {
    name: 'a denied caller is denied until the instant that it was told, and allowed then',
    source: 'Denied until the wait is over, allowed exactly then',
    *breaches(history, count) {
      if (history.plan.extras.leases || history.plan.extras.penalty?.then === 'fresh') return // units of a lease are charged before their calls
      const consumed = history.records.filter(({ call, execution }) => call.does === 'consume' && execution)
      for (const [key, records] of grouped(consumed, ({ call }) => call.key)) {
        if (!key.startsWith('plain')) continue // on others there are corrections
        yield* toldWrong(
          records.toSorted((a, b) => a.execution!.number - b.execution!.number),
          history,
          count,
        )
      }
    },
  },
  {
    name: 'a remembered denial ends at the instant that the server named',
    source: 'remembered denials',
    *breaches({ records, faults, plan }, count) {
      for (const { call, told, clock } of records) {
        if (!told?.isCached || told.allowed || told.degraded) continue
        count(1)
        if (
          plan.extras.penalty &&
          !OWN_MODE.has(call.does) &&
          told.reason !== 'blocked' &&
          told.reason !== 'cost'
        )
          yield `call ${call.id} was denied from memory, so that its penalty does not count it`
        if (isClockMoved({ faults }) || plan.extras.leases) continue
        if (told.reason === 'limit' && clock >= told.at)
          yield `call ${call.id} was denied from memory ${clock - told.at} us late`
      }
    },
  },
  {
    name: 'a call is carried out once at most, and one that was admitted is counted',
    source: 'At most once',
    *breaches({ plan, records, late, counted, server, faults }, count) {
      for (const [key, used] of counted) {
        if (!key.startsWith('ledger')) continue
        const calls = [...records, ...late].filter(
          ({ call, told }) =>
            (call.does === 'ledger' && call.key === key && told?.limit !== Infinity) ||
            ((call.does === 'both' || call.does === 'several') && ledgerOf(call) === key),
        )
        count(calls.length)
        const admitted = calls.filter(({ told }) => told?.allowed && !told.degraded)
        // What callers are told of two parts is told of the first: the one on the ledger, on another node, may be degraded.
        const here = admitted.filter(
          ({ call, execution }) =>
            (server.life === 0 || execution?.life === server.life) &&
            (plan.nodes === 1 || call.does !== 'both'),
        )
        // What a store that fails cannot undo of a denied whole stays charged.
        const unknown = calls.filter(
          ({ call, told, member, startedAt, settledAt }) =>
            !told ||
            told.degraded ||
            ((call.does === 'several' || (call.does === 'both' && plan.nodes > 1)) &&
              !told.allowed &&
              isDisturbed({ faults }, member, startedAt - UNDONE_US, settledAt! + UNDONE_US)),
        )
        if (used < here.length) yield `${key} counts ${used}, and ${here.length} were admitted since`
        const most = admitted.length + unknown.length
        if (used > most) yield `${key} counts ${used}, and ${most} were admitted or may have been`
      }
    },
  },
  {
    name: 'no more permits are held than there are, and as many more for each loss of state, or for an outage as long as the lease',
    source: 'at most `limit` permits are held at once',
    *breaches({ members, faults }, count) {
      const holds = members
        .flatMap((member) => member.holds.map((hold) => ({ ...hold, member })))
        .toSorted((a, b) => a.from - b.from)
      for (const hold of holds) {
        count(1)
        const held = holds.filter(
          ({ key, from, until }) => key === hold.key && from <= hold.from && until > hold.from,
        )
        // The last that the server granted, one of those that were heard of since, saw fewer held than its own limit.
        const heard = held.filter(({ from }) => from >= hold.from - CLAIM_US)
        const limit = Math.max(...heard.map((each) => each.limit))
        // Who has held one since before a loss goes on, also when told of it.
        const since = Math.min(hold.from - LEASE_MS * 1000, ...held.map(({ from }) => from))
        const during = under({ faults }, since, hold.from)
        const losses = during.filter((fault) => losesData(fault) || movedBy(fault) !== 0).length
        const isOutage = during.some(
          (fault) => fault.lasts > RENEWED_US && held.some(({ member }) => disturbs(fault, member)),
        )
        const most = limit * (1 + Math.max(losses, isOutage ? 1 : 0))
        if (held.length > most)
          yield `${held.length} calls hold one of ${most} permits of ${hold.key}: ${held.map(({ id }) => id).join()}`
      }
    },
  },
  {
    name: 'permits are free again once their holders are gone',
    source: 'is free soon after Redis is back, at the latest when its lease ends',
    *breaches({ plan, records, late, members, faults, server }, count) {
      const granted = new Set(members.flatMap(({ holds }) => holds.map(({ id }) => id)))
      for (const { call, error } of late) {
        if (call.does !== 'permit') continue
        // Then a permit that nobody holds, as its holder died, also while it waited for the permit, or its grant or its release was lost,
        // lasts until the clock has caught up, or an hour.
        const isOrphaned =
          members.some(({ process, holds }) => process.isDead && holds.some(({ key }) => key === call.key)) ||
          records.some(
            ({ call: { key }, member, settledAt }) =>
              member.process.isDead && key === call.key && settledAt === undefined,
          ) ||
          server.executions.some(
            ({ keys, sentAt, deliveredAt = Infinity, number }) =>
              keys[0]!.endsWith(`:semaphore:${call.key}`) &&
              (deliveredAt - sentAt > plan.deadline * 1000 || isLostBy(number, server)),
          )
        // The time of grace that one that was set back has begun is cut short by the next call, from when it lasts once more.
        const setBackAt = Math.max(...faults.map((fault) => (movedBy(fault) < 0 ? fault.at : 0)))
        const isGrace = !server.executions.some(
          ({ keys, at }) =>
            keys[0]!.endsWith(`:semaphore:${call.key}`) && at > setBackAt && at < late[0]!.startedAt,
        )
        if (isClockSetBack({ faults }) && (isOrphaned || isGrace) && call.id < HOUR_LATE_HOLD) continue
        count(1)
        if (!granted.has(call.id)) yield `call ${call.id} got no permit of ${call.key}: ${error ?? 'denied'}`
      }
    },
  },
  {
    name: 'a call is decided by its deadline',
    source: '`consume` and `peek` decide within `deadline`',
    *breaches({ records, plan, late }, count) {
      const firsts = new Map<Member, number>()
      for (const { call, member, startedAt } of records)
        if (call.does !== 'permit') firsts.set(member, Math.min(startedAt, firsts.get(member) ?? startedAt))
      for (const record of [...records, ...late]) {
        const { call, member, startedAt, settledAt } = record
        if (!['consume', 'peek', 'ledger', 'both', 'several'].includes(call.does) || settledAt === undefined)
          continue
        if (call.does === 'several' && hasPermit(call)) continue
        count(1)
        const first = (firsts.get(member) ?? startedAt) + START_US
        const from = Math.max(startedAt, stoodUntil(record, settledAt), startedAt < first ? first : 0)
        const late = settledAt - from - longestOf(call, plan) * 1000
        if (late > TIMER_US)
          yield `call ${call.id} of ${member.name} was decided ${late} us after its deadline`
      }
    },
  },
  {
    name: 'each call has an outcome',
    source: 'nothing unsettled',
    *breaches({ records, late }, count) {
      for (const { call, member, settledAt } of [...records, ...late]) {
        if (member.process.isDead) continue
        count(1)
        if (settledAt === undefined) yield `call ${call.id} of ${member.name} has none`
      }
    },
  },
  {
    name: 'a turn is never early, and turns come in the order of the bookings',
    source: 'acquire',
    *breaches(history, count) {
      const { records, server, faults } = history
      if (isClockMoved({ faults }) || history.plan.extras.penalty?.then === 'fresh') return
      const turns = records.filter(
        ({ call, told }) => call.does === 'acquire' && told?.allowed && !told.degraded,
      )
      for (const { call, told, clock } of turns) {
        count(1)
        if (clock < told!.at) yield `call ${call.id} had its turn ${told!.at - clock} us early`
      }
      const executions = new Map(server.executions.map((each) => [each.clock, each]))
      for (const [key, all] of grouped(turns, ({ call }) => call.key)) {
        const booked = all.flatMap(({ told, call }) => {
          const execution = executions.get(told!.now)
          return execution ? { execution, at: told!.at, id: call.id } : []
        })
        booked.sort((a, b) => a.execution.number - b.execution.number)
        for (const [i, turn] of booked.entries()) {
          const before = booked[i - 1]
          if (before?.execution.life !== turn.execution.life || isReset(key, history)) continue
          if (turn.at < before.at)
            yield `call ${turn.id} has its turn before ${before.id}, which was booked first`
        }
      }
    },
  },
  {
    name: 'the store decides again within 5 s of the last fault',
    source: 'The first reply closes the circuit',
    *breaches({ late }, count) {
      for (const { call, member, told, error } of late) {
        if (call.does !== 'consume') continue
        count(1)
        if (told?.allowed !== true || told.degraded)
          yield `call ${call.id} of ${member.name}: ${error ?? JSON.stringify(told)}`
      }
    },
  },
  {
    name: 'a reservation counts what it was settled at, or what stays at its end, once and exactly',
    source: '**Reservations**',
    *breaches(history, count) {
      const { counted, records } = history
      const reserved = grouped(reservedIn(history), ({ call }) => call.key)
      for (const [key, used] of counted) {
        if (!key.startsWith('budget')) continue
        // Of one whose answer was lost nobody knows.
        const unknown = records.filter(({ call, told }) => call.key === key && !told)
        let [least, most] = [0, unknown.reduce((sum, { call }) => sum + call.cost, 0)]
        for (const each of reserved.get(key) ?? []) {
          count(1)
          const [low, high] = countedBy(each, history)
          least += low
          most += high
        }
        if (used < least || used > most)
          yield `${key} counts ${used}, and its reservations ${least} to ${most}`
      }
    },
  },
  {
    name: 'a reservation is settled once, and is late from its end on',
    source: '**Reservations**',
    *breaches(history, count) {
      for (const { call, at, execution, end, deeds } of reservedIn(history)) {
        const extension = deeds.find(({ units }) => units === undefined)
        const settled = deeds.filter(({ units, told }) => units !== undefined && told)
        // A settling that a failover has lost is made once more.
        for (const [, those] of grouped(settled, (deed) => String(deed.execution?.life))) {
          // A late settling at nothing leaves no mark, one that was settled is told 0 units after its end, and where a clock was moved the
          // mark of a late settling may be over.
          const marked = those.filter(({ told }) => !told!.late || !isClockMoved(history))
          const effects = new Set(marked.flatMap(({ told }) => told!.units || []))
          if (effects.size > 1) yield `call ${call.id} was settled at ${[...effects].join()}`
        }
        for (const [i, { error, units, ...again }] of deeds.entries()) {
          const before = deeds.slice(0, i).find((deed) => deed.error && deed.units === units)?.error
          const isOver = again.at > at + ttlOf(call) * 1000 + REPEATED_US
          if (!before || extension || isClockMoved(history)) continue
          if (error === before && !isOver) yield `call ${call.id} was not settled again at ${again.at}`
        }
        for (const { told, execution: own, at: settledAt } of settled) {
          if (!own || !execution) continue
          count(1)
          const isLost = history.server.hasLost(execution.life, own.life)
          // A clock that was set back too hides it, as instants tell what came first; and so does its end, where a later one was settled.
          if (isLost && !told!.late && !isClockMoved(history) && own.clock < end)
            yield `call ${call.id} was settled in time, and its state was lost`
          if (own.life !== execution.life || isClockMoved(history) || (extension && !extension.told)) continue
          const extended = extension?.execution
          const last = extended && extended.number < own.number ? extended.clock + ttlOf(call) * 1000 : end
          // One that was sent before may have settled it in time.
          const isAgain = deeds.some(
            (deed) => deed.units !== undefined && deed.told !== told && deed.at <= settledAt,
          )
          if (told!.late ? own.clock < last : own.clock >= last && !isAgain)
            yield `call ${call.id} was settled ${own.clock - last} us after its end, late: ${told!.late}`
        }
      }
    },
  },
  {
    name: 'no more reservations of a key are open than may be',
    source: 'reservations: { max: 1000 }',
    *breaches(history, count) {
      const reserved = reservedIn(history).filter(({ execution }) => execution)
      for (const { call, execution: now, at } of reserved) {
        count(1)
        const open = reserved.filter(
          ({ call: { key }, execution, end, deeds }) =>
            key === call.key &&
            execution!.life === now!.life &&
            execution!.number <= now!.number &&
            end > now!.clock &&
            deeds.every((deed) => deed.at > at),
        )
        if (open.length > MOST_OPEN) yield `${open.length} of ${call.key} are open with call ${call.id}`
      }
    },
  },
  {
    name: 'an override is in force where it was made, in 2 s everywhere, in an outage as it was known, and until its end; a block is at once',
    source: '**Overrides**',
    *breaches(history, count) {
      const { records, late, members, listed } = history
      const rules = grouped(
        members.flatMap((member) => member.rules),
        ({ key }) => key,
      )
      const asked = [...records, ...late].filter(({ call, told }) => call.does === 'ledger' && told)
      for (const record of asked) {
        const own = rules.get(record.call.key)
        if (!own) continue
        count(1)
        const wrong = wrongRule(record, own, history)
        if (wrong) yield `call ${record.call.id} of ${record.member.name} ${wrong}`
      }
      // Whatever was lost, all processes go by what the store has in the end.
      if (isClockMoved(history) || !listed) return
      for (const { call, told, member } of late) {
        const limit = listedLimit(call.key, listed)
        if (call.does === 'ledger' && told && told.reason !== 'blocked' && told.limit !== limit)
          yield `${member.name} goes by ${told.limit} for ${call.key}, and the store has ${limit}`
      }
    },
  },
  {
    name: 'no more calls in time reach the provider in any second than it allows',
    source: 'Turns are spaced exactly',
    *breaches({ provider, faults }, count) {
      // Those that are late are charged a second turn, which stays unused.
      const inTime = provider.arrivals.filter(({ lateMs }) => lateMs !== undefined && lateMs <= LATE_MS)
      for (const [last, { at, call }] of inTime.entries()) {
        const first = inTime[last - ALLOWED]
        count(1)
        // Turns of a state that was lost are not known to the next.
        const isLost = isUnder(
          { faults },
          at - BOOKED_US,
          at,
          (fault) => losesData(fault) || movedBy(fault) !== 0,
        )
        if (first && first.at > at - 1_000_000 && !isLost)
          yield `call ${call} is one of ${ALLOWED + 1} in ${at - first.at} us`
      }
    },
  },
  {
    name: 'a pause that the provider asks for is kept: at once where it was heard, soon in every process',
    source: 'obey the other side',
    *breaches({ provider: { arrivals }, faults }, count) {
      for (const { process, call, waitMs, heardAt } of arrivals) {
        if (waitMs === undefined || heardAt === undefined) continue
        const isQuiet = !isUnder(
          { faults },
          heardAt - BOOKED_US,
          heardAt + waitMs * 1000,
          ({ fault }) => !fault.startsWith('provider'),
        )
        for (const later of arrivals) {
          const since = later.at - heardAt
          if (since <= 0 || since >= waitMs * 1000 - TIMER_US) continue
          count(1)
          if (later.process === process || (isQuiet && since > HELD_US))
            yield `call ${later.call} of ${later.process} went out ${since} us after ${call} of ${process} was told to wait ${waitMs} ms`
        }
      }
    },
  },
  {
    name: 'a call is made again after a refusal alone, and three times at most',
    source: '`retries`',
    *breaches({ provider: { arrivals } }, count) {
      for (const { call, attempt } of arrivals) {
        count(1)
        const before = arrivals.find((each) => each.call === call && each.attempt === attempt - 1)
        if (attempt > ATTEMPTS) yield `call ${call} went out ${attempt} times`
        if (before && before.status !== 429 && before.status !== 503)
          yield `call ${call} went out again after ${before.status}`
      }
    },
  },
  {
    name: 'of the calls that wait in a process the urgent ones go out first, then the oldest',
    source: 'The call waits in its process until it is first for its key',
    *breaches({ provider: { arrivals }, records, late }, count) {
      const sent = [...records, ...late].filter(({ call }) => call.does === 'send')
      const firstOf = new Map(
        arrivals.filter(({ attempt }) => attempt === 1).map((each) => [each.call, each.at]),
      )
      for (const { call, member, startedAt } of sent) {
        const at = firstOf.get(call.id)
        if (at === undefined) continue
        count(1)
        const passed = sent.find(
          (other) =>
            other.member === member &&
            (isUrgent(call.id) === isUrgent(other.call.id)
              ? other.startedAt < startedAt
              : isUrgent(other.call.id) && other.startedAt < at) &&
            (firstOf.get(other.call.id) ?? Infinity) > at &&
            (other.settledAt ?? Infinity) > at,
        )
        if (passed) yield `call ${call.id} went out before ${passed.call.id}`
      }
    },
  },
  {
    name: 'nothing is left once all is closed, and nothing is thrown that nobody hears',
    source: 'closing',
    *breaches({ left, stray }, count) {
      count(1)
      yield* left
      yield* stray
    },
  },
]

/** Calls that are not decided by the failure mode of the plan. */
const OWN_MODE = new Set<Call['does']>(['ledger', 'both', 'several', 'permit', 'reserve', 'rule', 'send'])

/** A call that goes out later than so many milliseconds after its turn is late. */
const LATE_MS = 10
/** So long before it goes out a call may have been booked. */
const BOOKED_US = 3_000_000
/** A hold is known to all turns after so long: those that come before are not confirmed. */
const HELD_US = 450_000

/** Milliseconds in which a call is decided. */
function longestOf({ does }: Call, { deadline, extras }: Plan): number {
  // What was charged for a denied whole is undone first, and deadlines are looked at every 10 ms.
  if (does === 'both' || does === 'several') return 1.5 * deadline + 10
  // A call asks for itself, with a deadline of its own, where its lease was denied.
  return extras.leases && does === 'consume' ? 2 * deadline : deadline
}

/** A permit is renewed so often. */
const RENEWED_US = 500_000
/** What was charged for a denied whole is undone within so long, and a circuit closes. */
const UNDONE_US = 1_000_000
/** The first calls of a process wait so long for the connection. */
const START_US = 1_000_000
/** By how much a timer may be late: deadlines are checked to the millisecond. */
const TIMER_US = 2000
/** How long after its end, at least, a settling without an answer may be sent again. */
const REPEATED_US = 29_000_000

function decided({ records }: History, isChosen: (record: Record) => boolean): Record[] {
  return records.filter((record) => record.call.does !== 'ledger' && isChosen(record))
}

function isAdmitted({ call, told }: Record): boolean {
  return told?.allowed === true && ['consume', 'settle', 'acquire', 'both'].includes(call.does)
}

/** A call that was admitted, by its key, when and for how much it counts, and the run of a script that decided it. */
interface Charge {
  readonly id: number
  readonly key: string
  readonly at: number
  readonly cost: number
  readonly run: number
}

function chargesOf(records: readonly Record[], history: History): Charge[] {
  return records.map((each) => ({
    id: each.call.id,
    key: each.call.key,
    // What is served from a lease counts when it is served.
    at: isLeased(each, history.plan) ? each.clock : each.told!.at,
    cost: each.call.does === 'settle' ? Math.min(each.call.cost, each.call.units) : each.call.cost,
    run: runOf(each, history),
  }))
}

/** The run that has decided a call: of a turn the one that confirmed it, or if none was heard that booked it; -1 where none is known. */
function runOf(record: Record, history: History): number {
  const { execution, told, call, member, settledAt } = record
  if (execution) return execution.number
  const { server, plan } = history
  if (isLeased(record, plan))
    return server.executions.findLast(({ clock }) => clock <= told!.now)?.number ?? -1
  const own = runsOn(call.key, history).filter(
    ({ process, deliveredAt }) => process === member.name && deliveredAt! <= settledAt!,
  )
  const booked = own.findLast(({ clock }) => clock === told!.now)
  if (call.does !== 'acquire' || !booked) return own.at(-1)?.number ?? -1
  const callsOf = ({ keys, args }: Execution): Omit<KeyCall, 'clock'>[] =>
    keys.flatMap((key, i) =>
      partsOfKey(key).key === call.key ? callOf(args[i] ?? args.at(-1)!, plan.policies.length) : [],
    )
  const nonces = callsOf(booked).map(({ nonce }) => nonce)
  const confirms = ({ operation, token }: Omit<KeyCall, 'clock'>): boolean =>
    operation === 'confirm' && nonces.includes(token.readDoubleLE(8))
  return (own.findLast((each) => callsOf(each).some(confirms)) ?? booked).number
}

/**
 * The charges on a key that a state of it has counted under a policy, for each state. A loss leaves those that it kept, and so each may be in
 * several. A clock that is set back leaves all, unless by so much that the state is discarded, or may have expired before.
 */
function* statesOf(
  charges: readonly Charge[],
  spec: PolicySpec,
  { server, plan }: History,
): Iterable<Charge[]> {
  const isCalendar = isOfCalendar(spec)
  const windows = plan.policies.filter((each) => !isOfCalendar(each)).map(({ options }) => options.window)
  const longest = isCalendar ? 2 * spec.options.window : Math.max(...windows)
  const rule = ruleOf(spec.shape.model, spec.options)
  // A turn that was booked ahead may have begun the next window of a calendar, and was given back since.
  const ahead = Math.max(0, ...plan.items.map((item) => (item.kind === 'call' ? item.maxWait * 1000 : 0)))
  /** Whether a state that was charged last at an instant may be gone, as the clock stood higher than it does. */
  const mayBeGone = (lastAt: number, highest: number, clock: number): boolean =>
    clock < highest &&
    (highest - (isCalendar ? clock : Math.min(lastAt, clock)) >= longest * 1000 ||
      (isCalendar &&
        highest + ahead > lastAt &&
        rule.model.bound(rule, BigInt(lastAt), BigInt(highest + ahead)) > rule.limit))
  const losses = [...server.losses]
  let state: Charge[] = []
  let [highest, seen] = [0, 0]
  for (const charge of charges.toSorted((a, b) => a.run - b.run)) {
    for (; losses[0] && losses[0].before <= charge.run; losses.shift()) {
      yield state
      const kept = new Set(losses[0].kept)
      state = state.filter(({ run }) => kept.has(run))
    }
    for (; seen <= charge.run; seen++) highest = Math.max(highest, server.executions[seen]!.clock)
    const clock = server.executions[charge.run]?.clock ?? 0
    const last = state.at(-1)
    if (last && mayBeGone(last.at, highest, clock)) {
      yield state
      state = []
      highest = clock
    }
    // In the window of a calendar that is kept it counts as at the last instant.
    state.push(isCalendar ? { ...charge, at: Math.max(charge.at, state.at(-1)?.at ?? 0) } : charge)
  }
  yield state
}

function isOfCalendar({ shape }: PolicySpec): boolean {
  return shape.model.onlyWindow !== undefined
}

/** Breaches of a promise by charges that one state has counted, net of what was given back. */
function* beyond(
  name: string,
  charges: readonly Charge[],
  { shape, options }: PolicySpec,
  history: History,
  count: (checked: number) => void,
): Iterable<string> {
  const { plan, faults } = history
  if (plan.extras.penalty?.then === 'fresh' || charges.length === 0) return // once more for each block
  const corrections = recordsOn(charges[0]!.key, history)
  const resets = corrections.filter(({ call }) => call.does === 'reset').length
  // After a failover to a replica that lags a charge that it has not is given back out of others.
  const isLagging = faults.some(({ fault }) => fault === 'server fails over')
  const returning: readonly string[] = isLagging ? ['refund', 'settle', 'acquire'] : ['refund']
  const refunded = corrections.reduce(
    (sum, { call }) => sum + (returning.includes(call.does) ? call.cost : 0),
    0,
  )
  const factors = faults.some(({ fault }) => fault === 'processes replaced') ? [1, plan.factor] : [1]
  const rules = factors.map((factor) => ruleOf(shape.model, scaled(options, factor)))
  const { model } = shape
  const bound = (rule: Rule, from: bigint, to: bigint): bigint =>
    plan.extras.leases && model.leasedBound ? model.leasedBound(rule, from, to) : model.bound(rule, from, to)
  const most = (from: number, to: number): number =>
    Math.max(...rules.map((rule) => Number(bound(rule, BigInt(from), BigInt(to)))))
  const sorted = charges.toSorted((a, b) => a.at - b.at)
  for (const [last, charge] of sorted.entries()) {
    let sum = 0
    for (let first = last; first >= 0; first--) {
      sum += sorted[first]!.cost
      // Most spans are far below what passes at once.
      if (sum <= Number(rules[0]!.capacity)) continue
      const allowed = most(sorted[first]!.at, charge.at)
      count(1)
      if (sum <= allowed * (1 + resets) + refunded) continue
      const span = charge.at - sorted[first]!.at
      yield `${name}: ${sum} units in ${span} us, up to call ${charge.id}, where ${shape.title} lets ${allowed} pass`
      return
    }
  }
}

function isLeased({ call, told, execution }: Record, { extras }: Plan): boolean {
  return extras.leases !== undefined && !told!.degraded && !execution && call.does !== 'acquire'
}

/** Breaches by the decisions on one key, in the order of their executions. */
function* toldWrong(
  records: readonly Record[],
  history: History,
  count: (checked: number) => void,
): Iterable<string> {
  for (const [i, denied] of records.entries()) {
    const isBlocked = denied.told!.reason === 'blocked'
    if (denied.told!.allowed || (denied.told!.reason !== 'limit' && !isBlocked)) continue
    for (const later of records.slice(i + 1, i + 40)) {
      if (later.execution!.life !== denied.execution!.life || later.member.factor !== denied.member.factor)
        break
      if (isHidden(denied, later, history)) break
      count(1)
      const { told, call } = later
      const isBefore = told!.now < denied.told!.at
      if (told!.allowed && isBefore && call.cost >= denied.call.cost)
        yield `call ${call.id} was allowed ${denied.told!.at - told!.now} us before the instant that ${denied.call.id} was told`
      if (
        !told!.allowed &&
        !isBefore &&
        !isBlocked &&
        call.cost <= denied.call.cost &&
        told!.reason === 'limit'
      )
        yield `call ${call.id} was denied ${told!.now - denied.told!.at} us after the instant that ${denied.call.id} was told`
      if (told!.allowed) break
    }
  }
}

/** Whether something on the key was carried out between two decisions of which nobody was told. */
function isHidden(denied: Record, later: Record, history: History): boolean {
  const { key } = denied.call
  const [from, to] = [denied.execution!.number, later.execution!.number]
  return runsOn(key, history).some(
    (run) =>
      run.number >= from &&
      run.number <= to &&
      recordsOn(key, history).some(
        ({ call, member, startedAt, settledAt = Infinity, execution }) =>
          !execution &&
          call.does !== 'peek' &&
          member.name === run.process &&
          startedAt <= run.sentAt &&
          settledAt >= run.sentAt,
      ),
  )
}

/** Whether what an execution has done is not in a state that the server went on with. */
function isLostBy(number: number, { losses }: History['server']): boolean {
  const first = losses.find(({ before }) => before > number)
  return first !== undefined && !first.kept.includes(number)
}

function isReset(key: string, { records }: History): boolean {
  return records.some(({ call }) => call.key === key && (call.does === 'reset' || call.does === 'block'))
}

/** The end of the last time in which the process of a call stood still while the call was under way, or 0. */
function stoodUntil({ member, startedAt }: Record, settledAt: number): number {
  const during = member.stills.filter(([from, to]) => from <= settledAt && to >= startedAt)
  return Math.max(0, ...during.map(([, to]) => to))
}

function reservedIn({ members }: History): Reserved[] {
  return members.flatMap((member) => member.reserved)
}

/** The least and the most that a reservation counts in the end, with its late settling, whose units count beside what stayed, once. */
function countedBy({ call, execution, deeds }: Reserved, { server, faults }: History): [number, number] {
  const settlings = deeds.filter(({ units }) => units !== undefined)
  const isHere = (in_: typeof execution): boolean => server.losses.length === 0 || in_?.life === server.life
  const first = settlings.find(({ told }) => told?.late === false)
  const unknown = settlings.filter(({ told }) => !told).map(({ units }) => units!)
  const late = settlings.filter(({ told }) => told?.late)
  // Where time stands still it has not ended.
  const atEnd = isClockSetBack({ faults }) ? [call.units, call.cost] : [call.units]
  // One that is told 0 units may have been settled before, by one whose answer was lost.
  const before = first?.told!.units === 0 ? unknown : []
  const charges = first ? [call.cost + first.told!.units, ...before] : [...atEnd, ...unknown]
  const lost = isHere(execution) ? [] : [0, call.cost, ...settlings.map(({ units }) => units!)]
  const kept = late.filter((each) => isHere(each.execution))
  const unitsOf = (those: readonly Deed[]): number[] => those.map(({ told, units }) => told?.units ?? units!)
  // A minute after its end the mark is gone, by a clock that was set forward sooner: what is sent again then is charged once more.
  const mostLate = (units: readonly number[]): number =>
    isClockMoved({ faults }) ? units.reduce((sum, each) => sum + each, 0) : Math.max(0, ...units)
  return [
    Math.min(...charges, ...lost) + Math.max(0, ...unitsOf(kept)),
    Math.max(...charges, ...lost) +
      mostLate(kept.length > 0 ? unitsOf(kept) : [...unknown, ...unitsOf(late)]),
  ]
}

/** The first breach of each law, and how often each was applied. */
export function judge(history: History): {
  readonly broken: readonly (readonly [law: Law, breach: string])[]
  readonly checked: number
} {
  let checked = 0
  const broken: (readonly [Law, string])[] = []
  for (const law of LAWS) {
    for (const breach of law.breaches(history, (n) => (checked += n))) {
      broken.push([law, breach])
      break
    }
  }
  return { broken, checked }
}
