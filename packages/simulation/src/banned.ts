import type { Law } from './law.js'
import type { History, Record } from './simulation.js'
import { isClockMoved, isDisturbed } from './under-faults.js'

/** A block that a penalty has begun is written under the other lists within so long. */
const SPREAD_US = 300_000
/** Clocks of processes and of the server are compared to the millisecond. */
const NEAR_US = 2000

/** Laws about blocks of keys, which concern every list of policies that calls bring. */
export const BANNED: readonly Law[] = [
  {
    name: 'a block denies its key under every list of policies, until its end',
    source: 'denies until then, unblock or reset, under every list that the limiter knows',
    *breaches(history, count) {
      for (const block of history.records) {
        const { call, settledAt, error, startedAt, member } = block
        const isPenalty = asksApi(block) && block.told?.reason === 'limit' && block.told.blockedUntil > 0
        if (settledAt === undefined || error !== undefined || !(call.does === 'block' || isPenalty)) continue
        const lasts = isPenalty ? block.told!.blockedUntil - block.told!.now : (call.maxWait + 1) * 1000
        const from = isPenalty ? settledAt + SPREAD_US : settledAt
        const until = startedAt + lasts - NEAR_US
        if (isPenalty && (block.told!.degraded || isDisturbed(history, member, startedAt - 500_000, from)))
          continue
        for (const asked of history.records) {
          const isBetween = asked.startedAt >= from && (asked.settledAt ?? Infinity) < until
          if (asked.call.key !== call.key || !asksApi(asked) || !isBetween || !asked.execution) continue
          if (isEnded(block, asked, history) || asked.told!.reason === 'cost') continue
          count(1)
          if (asked.told!.reason !== 'blocked')
            yield `call ${asked.call.id} was decided (${asked.told!.reason}) ${until - asked.startedAt} us before the block of ${call.id} ends`
        }
      }
    },
  },
  {
    name: 'a process goes on denying a key in an outage that it knows to be blocked',
    source: 'A process goes on denying the keys that it knows to be blocked',
    *breaches(history, count) {
      const { records, plan } = history
      if (plan.onStoreError !== 'local' && plan.onStoreError !== 'allow') return
      for (const known of records) {
        const { told, execution, member, call, settledAt } = known
        if (!execution || !asksApi(known) || call.does === 'tier' || !(told!.blockedUntil > told!.now))
          continue
        const until = settledAt! + told!.blockedUntil - told!.now - NEAR_US
        for (const asked of records) {
          if (asked.member !== member || asked.call.key !== call.key || asked.call.does !== call.does)
            continue
          if (!asked.told?.degraded || asked.startedAt <= settledAt! || asked.settledAt! >= until) continue
          const isOver = records.some(
            (each) =>
              each.member === member &&
              each.call.key === call.key &&
              each !== known &&
              each.startedAt <= asked.settledAt! &&
              (each.settledAt ?? Infinity) >= known.startedAt &&
              !each.told?.degraded &&
              each.told?.reason !== 'blocked',
          )
          if (isOver || asked.told.reason === 'cost') continue
          count(1)
          if (asked.told.reason !== 'blocked')
            yield `call ${asked.call.id} of ${member.name} is not blocked (${asked.told.reason}), as ${call.id} was`
        }
      }
    },
  },
]

/** Whether a call asks the limiter under one of its lists. */
function asksApi({ call }: Record): boolean {
  return ['consume', 'settle', 'tier'].includes(call.does)
}

/** Whether a block may be over before its time: the key was reset, blocked for another time, or its state may be lost. */
function isEnded(block: Record, asked: Record, { records, server, faults }: History): boolean {
  const before = server.executions.findLast(({ at }) => at <= block.startedAt)?.life ?? 0
  return (
    isClockMoved({ faults }) ||
    before !== asked.execution!.life ||
    records.some(
      ({ call, startedAt, settledAt = Infinity, error }) =>
        call.key === block.call.key &&
        (call.does === 'reset' || call.does === 'block') &&
        call !== block.call &&
        startedAt <= asked.settledAt! &&
        // One that failed may be carried out later.
        (error !== undefined || settledAt >= block.startedAt),
    )
  )
}
