import { grouped, type Law, runsOn } from './law.js'
import { LEDGER, NEARING } from './member.js'
import type { Call, Plan } from './plan.js'
import { partsOfKey } from './server.js'
import { hasPermit, type History, ledgerOf, type Record } from './simulation.js'
import { callOf } from './twin.js'
import {
  BUSY_US,
  disturbs,
  isClockMoved,
  isDisturbed,
  isUnder,
  reachableAt,
  REASONS,
} from './under-faults.js'

/** The deadline of semaphores in milliseconds, the default. */
const SEMAPHORE_MS = 50
/** Calls of a process that are in flight at once, at most. */
const IN_FLIGHT = 1000
/** Calls that probe find the store within this time once it is back. */
const PROBED_US = 500_000
/** Once the store answers, a booking is made again within this time: the circuit has closed, and the longest pause is over. */
const AGAIN_US = 2_000_000

/** Errors with which calls may fail, and which calls. */
const EXPECTED: readonly (readonly [error: RegExp, may: (call: Call, plan: Plan) => boolean])[] = [
  [
    /^STORE_/,
    (call, { onStoreError }) =>
      DECIDING.has(call.does)
        ? onStoreError === 'throw'
        : call.does === 'several'
          ? hasPermit(call)
          : call.does !== 'ledger',
  ],
  [
    /^Error: hung up$/,
    ({ does, hangsUp }) => does === 'send' || (does === 'acquire' && hangsUp !== undefined),
  ],
  [/^(?:Error: (?:429|503)|RATE_LIMIT_EXCEEDED)$/, ({ does }) => does === 'send'],
]
/** Calls that are decided by the failure mode of the plan. */
const DECIDING = new Set<Call['does']>(['consume', 'peek', 'tier', 'settle', 'acquire', 'both'])

/** Laws about what processes do with what the server says. */
export const CONDUCT: readonly Law[] = [
  {
    name: 'a call that no fault touches is decided by the store, and one in a failure is degraded for the reason that its row names',
    source: 'What each failure looks like',
    *breaches({ plan, faults, records }, count) {
      // Where a message may be as slow as deadlines are long, it explains each timeout, and for calls that wait behind others sooner: no
      // more than 1,000 are in flight. A semaphore asks no longer than it may wait.
      const isSlow = ({ call, member, startedAt }: Record): boolean => {
        const takesPermit = call.does === 'permit' || (call.does === 'several' && hasPermit(call))
        const wait = (call.does === 'permit' && call.maxWait) || Infinity
        const deadline = Math.min(plan.deadline, wait, takesPermit ? SEMAPHORE_MS : Infinity)
        const waiting = records.filter(
          (other) =>
            other.member === member &&
            other.startedAt <= startedAt &&
            (other.settledAt ?? Infinity) >= startedAt,
        )
        return plan.delay[1] * 40 * Math.ceil(waiting.length / IN_FLIGHT) > 1000 * deadline
      }
      for (const record of records) {
        const { call, member, startedAt, settledAt, told, error } = record
        if (settledAt === undefined) continue
        count(1)
        const reason = told ? told.degraded : failureOf(error)
        if (!reason || (reason === 'timeout' && isSlow(record))) continue
        // One deadline is for both steps of a call on several keys, and the process may stand still in between.
        const isOnSeveral = call.does === 'several' || call.does === 'both'
        const stood = member.stills.some(([from, to]) => from <= settledAt && to >= startedAt)
        if (isOnSeveral && reason === 'timeout' && stood) continue
        const disturbing = faults.filter((fault) => disturbs(fault, member) && fault.at <= settledAt)
        const end = Math.max(0, ...disturbing.map(({ at, lasts }) => at + lasts)) + PROBED_US
        const hasProbed = records.some(
          (other) =>
            other.member === member && other.startedAt > end && other.startedAt < startedAt - PROBED_US,
        )
        if (startedAt > end && hasProbed) {
          yield `call ${call.id} of ${member.name} is degraded (${reason}) ${startedAt - end} us after the last fault`
          continue
        }
        const reasons = disturbing.flatMap(({ fault }) => REASONS.get(fault)!)
        // Calls that waited for the connection are written when it is back, and may be too late then.
        const isBack = disturbing
          .map(reachableAt)
          .some((at) => (at > startedAt - PROBED_US || !hasProbed) && at < settledAt)
        // A permit is not waited for as long as it would take to learn why.
        const isShort = call.does === 'permit' && call.maxWait > 0 && call.maxWait <= SEMAPHORE_MS
        if (isBack || isShort) reasons.push('timeout')
        if (disturbing.length > 0 && !reasons.includes(reason))
          yield `call ${call.id} of ${member.name} is degraded (${reason}), not ${reasons.join()}`
      }
    },
  },
  {
    name: 'nothing fails but with an error of the store where it may, as its caller hung up, or as the provider refused it',
    source: 'A denial is a value, never thrown',
    *breaches({ plan, records, late, members }, count) {
      for (const { call, member, error } of [...records, ...late]) {
        count(1)
        if (error !== undefined && !EXPECTED.some(([what, may]) => what.test(error) && may(call, plan)))
          yield `call ${call.id} (${call.does}) of ${member.name} failed with ${error}`
      }
      for (const { call, error } of members.flatMap(({ failures }) => failures)) {
        count(1)
        // A reservation that has ended cannot be extended.
        if (error.startsWith('STORE_') || (call.does === 'reserve' && error === 'RESERVATION_ENDED')) continue
        yield `what call ${call.id} (${call.does}) does later failed with ${error}`
      }
    },
  },
  {
    name: 'a process admits no more units than the server has charged for it',
    source: 'It serves units that it has booked',
    *breaches({ plan, records, twin, server }, count) {
      if (twin.isBlind) return
      const { leases } = plan.extras
      const ttl = leases ? (leases.ttl + 20) * 1000 : Infinity
      const served = records.filter(
        ({ call, told }) => told?.allowed && !told.degraded && ['consume', 'settle'].includes(call.does),
      )
      const events = [
        ...served.map((record) => ({ at: record.settledAt!, record, execution: undefined })),
        ...server.executions.map((execution) => ({ at: execution.at, record: undefined, execution })),
      ].toSorted((one, other) => one.at - other.at)
      /** Units that were charged and not served yet, by process and key, each until an instant. */
      const spare = new Map<string, { units: number; readonly until: number }[]>()
      for (const { at, record, execution } of events) {
        for (const [key, units] of execution ? (twin.charged.get(execution.number) ?? []) : []) {
          const id = `${execution!.process} ${key}`
          spare.set(id, [...(spare.get(id) ?? []), { units, until: at + ttl }])
        }
        if (!record) continue
        count(1)
        const id = `${record.member.name} ${record.call.key}`
        const { cost } = record.call
        let left = cost
        // What a server that was slow has decided is served later.
        const isOwn = record.execution !== undefined
        for (const each of spare.get(id) ?? []) {
          if (each.until < at && !isOwn) continue
          const taken = Math.min(each.units, left)
          left -= taken
          each.units -= taken
        }
        if (left > 0) yield `call ${record.call.id} on ${id} was served ${left} units that were not charged`
      }
    },
  },
  {
    name: 'a booking is carried out once, and once more at most for each connection that broke after it was written',
    source: 'A booking is carried out once, and at most once more for each broken connection',
    *breaches({ plan, records, twin, server, faults }, count) {
      // Where a state is lost, or a key is blocked, calls that wait book again.
      if (server.life > 0 || plan.extras.penalty || isClockMoved({ faults })) return
      for (const [id, booked] of twin.booked) {
        const acquires = records.filter(
          ({ call, member }) => call.does === 'acquire' && `${member.name} ${call.key}` === id,
        )
        count(1)
        const again = acquires.flatMap(({ member, startedAt, settledAt = Infinity }) =>
          member.link.breaks.filter((at) => at >= startedAt && at <= settledAt),
        )
        if (booked > acquires.length + again.length)
          yield `${id}: ${booked} bookings of ${acquires.length} calls were carried out, and ${again.length} met a broken connection`
      }
    },
  },
  {
    name: "under 'throw' and 'deny' a wait ends in an outage when its maxWait is over",
    source: 'keeps waiting for the reply',
    *breaches(history, count) {
      for (const { call, member, startedAt, settledAt, reason } of failedWaits(
        history,
        /unavailable|timeout|oom|readonly|busy|loading/i,
      )) {
        count(1)
        const early = startedAt + Math.max(call.maxWait, history.plan.deadline) * 1000 - settledAt
        if (early > 1000)
          yield `call ${call.id} of ${member.name} was given up (${reason}) ${early} us before its end`
      }
    },
  },
  {
    name: 'a booking that was refused, or lost with its connection, is made again once the store answers',
    source: 'books again once Redis answers other calls, after 25 ms to 1 s',
    *breaches(history, count) {
      for (const { call, member, startedAt, settledAt, reason } of failedWaits(
        history,
        /unavailable|oom|readonly|busy|loading/i,
      )) {
        if (isDisturbed(history, member, settledAt - AGAIN_US, settledAt)) continue
        if (startedAt > settledAt - AGAIN_US) continue
        count(1)
        yield `call ${call.id} of ${member.name} was given up (${reason}), though the store has answered for ${AGAIN_US} us`
      }
    },
  },
  {
    name: 'a call that says it was not sent was not carried out, and none is sent whose caller has had an answer',
    source: '`StoreError.sent` says which',
    *breaches({ records, server, twin }, count) {
      // On mixed keys there are calls on several, too.
      const asked = records.filter(
        ({ call }) => ['consume', 'acquire'].includes(call.does) && !call.key.startsWith('mixed'),
      )
      const byKey = grouped(asked, ({ member, call }) => `${member.name} ${call.key}`)
      for (const { number, process, sentAt, deliveredAt } of server.executions) {
        for (const [key, units] of twin.charged.get(number) ?? []) {
          const own = byKey.get(`${process} ${key}`) ?? []
          if (units === 0 || own.length === 0) continue
          count(1)
          const waiting = own.filter(
            ({ startedAt, settledAt = Infinity }) => startedAt <= sentAt && settledAt >= sentAt,
          )
          // One whose answer was heard may have been lost since, and be booked again.
          if (waiting.some(({ isUnsent, settledAt }) => !isUnsent || Number(deliveredAt) <= settledAt!))
            continue
          yield waiting.length > 0
            ? `run ${number} of ${process} charged ${key}, and call ${waiting[0]!.call.id} says that it was not sent`
            : `run ${number} of ${process} charged ${key}, and no call waited for it`
        }
      }
    },
  },
  {
    name: 'what is charged for a whole that has ended is given back once the answer comes',
    source: 'what was charged for a denied call is undone, late answers too',
    *breaches({ records, server, members, faults, twin }, count) {
      const done = server.executions.flatMap((execution) => {
        const { keys, args } = execution
        const { limiter, key } = partsOfKey(keys[0]!)
        return limiter === 'ledger' && keys.length === 1
          ? [{ ...execution, key, operation: callOf(args[0]!, 1).operation }]
          : []
      })
      for (const { operation, process, key, sentAt, deliveredAt, number } of done) {
        if (operation !== 'commit' || deliveredAt === undefined) continue
        // A key that was blocked since it was looked at is charged nothing.
        if (!twin.charged.get(number)?.some(([, units]) => units > 0)) continue
        const wholes = records.filter(
          ({ call, member }) =>
            (call.does === 'several' || call.does === 'both') &&
            member.name === process &&
            ledgerOf(call) === key,
        )
        const own = wholes.filter(
          (each) => each.startedAt <= sentAt && (each.settledAt ?? Infinity) >= sentAt,
        )
        const hasEnded = own.every(
          ({ told, settledAt = Infinity }) => told?.allowed === false && settledAt < deliveredAt,
        )
        const { link } = members.find(({ name }) => name === process)!
        const isCut =
          link.breaks.some((at) => at >= deliveredAt && at <= deliveredAt + BUSY_US) ||
          isUnder({ faults }, deliveredAt, deliveredAt + BUSY_US, ({ fault }) => fault !== 'slow network')
        if (own.length === 0 || !hasEnded || isCut) continue
        count(1)
        const isUndone = done.some(
          (each) =>
            each.process === process &&
            each.key === key &&
            each.sentAt === deliveredAt &&
            (each.operation === 'cancel' || each.operation === 'release'),
        )
        if (!isUndone)
          yield `run ${number} of ${process} charged ${key} for call ${own[0]!.call.id}, which had ended`
      }
    },
  },
  {
    name: 'turns of one process come in the order of their bookings',
    source: 'served first come, first served',
    *breaches(history, count) {
      for (const member of history.members) {
        const turns = history.records.filter(
          (each) =>
            each.member === member &&
            each.call.does === 'acquire' &&
            each.told?.allowed &&
            !each.told.degraded,
        )
        const placed = turns.flatMap((turn) => {
          const execution = runsOn(turn.call.key, history).find(({ clock }) => clock === turn.told!.now)
          return execution ? { turn, execution } : []
        })
        placed.sort((a, b) => a.execution.number - b.execution.number)
        for (const [i, { turn, execution }] of placed.entries()) {
          const before = placed.slice(0, i).findLast((each) => each.turn.call.key === turn.call.key)
          if (before?.execution.life !== execution.life) continue
          count(1)
          if (turn.settledAt! < before.turn.settledAt! && turn.told!.at >= before.turn.told!.at)
            yield `call ${turn.call.id} of ${member.name} had its turn before ${before.turn.call.id}, which was booked first`
        }
      }
    },
  },
  {
    name: 'once the circuit is open, no call waits for the store',
    source: 'A circuit opens after five consecutive failures',
    *breaches({ plan, records, members }, count) {
      const wait = plan.deadline * 1000
      for (const member of members) {
        const own = records.filter(
          (each) => each.member === member && each.settledAt !== undefined && each.told,
        )
        const failed = own.filter(
          ({ told }) => told!.degraded === 'timeout' || told!.degraded === 'unavailable',
        )
        for (const record of failed) {
          const { call, startedAt, settledAt } = record
          if (!['consume', 'peek'].includes(call.does) || settledAt! - startedAt < wait) continue
          const heard = member.link.heard.findLast((at) => at <= settledAt!) ?? member.process.startedAt
          const since = failed.filter(
            (each) =>
              each.settledAt! - each.startedAt >= wait &&
              each.startedAt > heard &&
              each.settledAt! < startedAt,
          )
          // Of a flood all wait that were made before the circuit opened.
          const turns = new Set(since.map((each) => each.startedAt)).size
          // The last one opens it, where the first is two deadlines ago.
          const last = Math.max(...since.map((each) => each.settledAt!))
          if (turns < 6 || last < since[0]!.settledAt! + 2 * wait + 1000) continue
          if (startedAt < since[0]!.settledAt! + 3 * wait) continue
          count(1)
          yield `call ${call.id} of ${member.name} waited for ${settledAt! - startedAt} us after ${since.length} failures in a row`
        }
      }
    },
  },
  {
    name: 'a share of a limit that is near is told to whom crosses it, in the step of his charge, and to nobody else',
    source: 'calendar and fixed windows: an event when a charge crosses a share',
    *breaches({ records, members }, count) {
      for (const member of members) {
        const own = records.filter((each) => each.member === member && each.call.key === UNRULED)
        for (const { call, told, settledAt, execution } of own) {
          if (call.does !== 'ledger' || !told?.allowed || !execution) continue
          const used = LEDGER - told.remaining
          if (!NEARING.includes(used)) continue
          count(1)
          const isTold = member.crossings.some(
            ({ key, units, at }) => key === call.key && units === used && at === settledAt,
          )
          if (!isTold) yield `call ${call.id} of ${member.name} was not told that it was number ${used}`
        }
        const wholes = records.filter((each) => each.member === member && ledgerOf(each.call) === UNRULED)
        for (const { key, units, at } of member.crossings) {
          if (key !== UNRULED) continue
          count(1)
          const isCharge = [...own, ...wholes].some(
            ({ call, told, startedAt, settledAt = Infinity }) =>
              startedAt <= at &&
              settledAt >= at &&
              (call.does !== 'ledger' || (settledAt === at && told && LEDGER - told.remaining === units)),
          )
          if (!isCharge)
            yield `${member.name} was told of ${units} units of ${key}, which no call of it charged`
        }
      }
    },
  },
  {
    name: 'a denial that is remembered is not asked for again',
    source: 'Four costs a key ask and are remembered exactly',
    *breaches({ plan, records, members, server, faults }, count) {
      if (plan.extras.penalty || plan.extras.leases) return
      for (const member of members) {
        const own = records.filter(
          (each) =>
            each.member === member && each.call.does === 'consume' && each.call.key.startsWith('plain'),
        )
        for (const asked of own.filter(
          ({ execution, told }) => execution && told && !told.allowed && told.reason === 'limit',
        )) {
          const { call, startedAt } = asked
          const known = own.filter(
            (each) =>
              each.execution &&
              each.call.key === call.key &&
              each.told?.reason !== 'cost' &&
              each.settledAt! < startedAt,
          )
          const lastAllowed = Math.max(
            0,
            ...own
              .filter(
                (each) => each.call.key === call.key && each.told?.allowed && each.startedAt < startedAt,
              )
              .map(({ settledAt }) => settledAt ?? Infinity),
          )
          const denials = known.filter(({ told, settledAt }) => !told!.allowed && settledAt! > lastAllowed)
          // Of each cost the latest, which may end before an earlier one.
          const newest = [...new Map(denials.map((each) => [each.call.cost, each])).values()]
            .filter((each) => remembersUntil(each) > startedAt)
            .slice(-COSTS)
          const isCovered = newest.some((each) => covers(each, asked))
          const asking = own.filter(
            (each) =>
              each !== asked &&
              each.told?.reason !== 'cost' &&
              each.execution &&
              each.call.key === call.key &&
              each.startedAt <= startedAt &&
              each.call.id < call.id &&
              each.settledAt! > startedAt &&
              newest.some((denial) => denial.settledAt! < each.startedAt && covers(denial, each)),
          )
          count(1)
          const same = newest.find((each) => each.call.cost === call.cost)
          if (same || (isCovered && newest.length + asking.length >= COSTS))
            yield `call ${call.id} of ${member.name} asked for ${call.cost} units, as denied ${(same ?? newest[0]!).call.id}`
        }
        // Instants before and after the clock was moved are not compared.
        const cachedOnes = isClockMoved({ faults }) ? [] : own
        for (const cached of cachedOnes.filter(
          ({ told }) => told?.isCached && told.reason === 'limit' && !told.degraded,
        )) {
          const smaller = own.find(
            (each) =>
              each.execution &&
              each.call.key === cached.call.key &&
              each.call.cost <= cached.call.cost &&
              each.settledAt! < cached.startedAt &&
              remembersUntil(each) > cached.startedAt &&
              each.told!.at > cached.told!.at &&
              each.execution.life === server.life &&
              !isSince(each, cached, own),
          )
          if (smaller)
            yield `call ${cached.call.id} of ${member.name} was told ${smaller.told!.at - cached.told!.at} us less than ${smaller.call.id}, of a smaller cost`
        }
        const never = own.filter(({ told, execution }) => told?.reason === 'cost' && execution)
        for (const [i, record] of never.entries()) {
          const before = never.slice(0, i).findLast((each) => each.call.key === record.call.key)
          if (!before || before.execution === record.execution) continue
          count(1)
          if (
            record.execution!.at - before.settledAt! < REMEMBERED_US - 100_000 &&
            before.settledAt! < record.startedAt
          )
            yield `call ${record.call.id} of ${member.name} asked for a cost that never fits, as ${before.call.id} had`
        }
      }
    },
  },
  {
    name: 'a process that decides alone blocks keys as the penalty says',
    source: 'is decided by the same policies in this process',
    *breaches({ plan, records, members }, count) {
      const { penalty } = plan.extras
      if (!penalty || plan.onStoreError !== 'local') return
      for (const member of members) {
        const refused = new Map<string, number[]>()
        const own = records.filter(
          ({ member: its, told, call }) =>
            its === member &&
            told &&
            (!told.degraded || ['consume', 'settle', 'acquire'].includes(call.does)),
        )
        for (const { call, told, settledAt } of own.toSorted((a, b) => a.settledAt! - b.settledAt!)) {
          if (!told!.degraded) {
            // A block is forgotten as soon as the server decides a call of its key as not blocked.
            if (told!.reason !== 'blocked') refused.delete(call.key)
            continue
          }
          const before = refused.get(call.key) ?? []
          const last = before.at(-1)!
          count(1)
          if (
            before.length >= penalty.after &&
            settledAt! < last + penalty.block * 1000 - 1000 &&
            (told!.allowed || told!.reason === 'limit')
          )
            yield `call ${call.id} of ${member.name} is not blocked after ${before.length} refusals`
          if (told!.reason === 'limit')
            refused.set(
              call.key,
              [...before, settledAt!].filter((at) => at > settledAt! - penalty.forgetAfter * 1000),
            )
        }
      }
    },
  },
]

/** The key of the ledger that has no overrides. */
const UNRULED = 'ledger0'

/** The longest time for which denials are remembered. */
const REMEMBERED_US = 1_000_000

/** Costs of a key that are remembered exactly. */
const COSTS = 4

/** Whether a denial says that a call is denied too. */
function covers({ call, told, startedAt }: Record, asked: Record): boolean {
  const scarceUntil = startedAt + Math.min(told!.nextUnitAt - told!.now, REMEMBERED_US)
  return asked.call.cost > call.cost || (asked.call.cost > told!.remaining && asked.startedAt < scarceUntil)
}

/** Whether a call of the process was admitted, or denied with another wait, between two. */
function isSince(from: Record, to: Record, own: readonly Record[]): boolean {
  return own.some(
    ({ call, told, settledAt }) =>
      call.key === from.call.key &&
      told?.allowed &&
      settledAt! >= from.startedAt &&
      settledAt! <= to.startedAt,
  )
}

/** Until when a process denies the cost of a call without asking, as it was denied. */
function remembersUntil({ told, startedAt }: Record): number {
  return told!.reason !== 'limit' ? 0 : startedAt + Math.min(told!.at - told!.now, REMEMBERED_US)
}

/** The waits that ended in an outage for one of these reasons, under the modes that wait for the store. */
function* failedWaits({ plan: { onStoreError }, records }: History, reasons: RegExp) {
  if (onStoreError === 'local' || onStoreError === 'allow') return
  for (const record of records) {
    const { call, settledAt, told, error } = record
    if (call.does !== 'acquire' || settledAt === undefined || told?.reason === 'cost') continue
    const reason = told ? told.degraded : error
    if (reason && reasons.test(reason)) yield { ...record, call, settledAt, reason }
  }
}

/** The failure of the store that an error says, as `degraded` has it. */
function failureOf(error: string | undefined): string | undefined {
  return error?.startsWith('STORE_') ? error.slice('STORE_'.length).toLowerCase() : undefined
}
