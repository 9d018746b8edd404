import type * as sabotage from '../../../scripts/verify/sabotage/mistakes.js'

/** A mistake that does harm only where two faults meet. */
type Pair = Omit<sabotage.Mistake, 'row'>

const channel = 'packages/core/src/resilience/store-channel.ts'
const records = 'packages/core/src/limiter/known-records.ts'
const booking = 'packages/core/src/resilience/booking-until-max-wait.ts'
const semaphore = 'lua/semaphore.lua'
const pauses = 'packages/outbound/src/key-queue.ts'

export const PAIRS: readonly Pair[] = [
  {
    mechanism: 'a process begins + no connection',
    mistake: 'its first calls wait for one that is made, and not for one that fails',
    file: channel,
    text: 'Promise.resolve(starting).then(begin, begin)',
    broken: 'Promise.resolve(starting).then(begin, () => {})',
  },
  {
    mechanism: 'a process begins + no connection',
    mistake: 'its calls fail with the first read of records',
    file: records,
    text: 'const inTime = within(store.startTimeout ?? 1000, ended).catch(() => {})',
    broken: 'const inTime = within(store.startTimeout ?? 1000, ended)',
  },
  {
    mechanism: 'a process begins + no connection',
    mistake: 'records are not read again after a first read that failed',
    file: records,
    text: 'if (nowMs() - this.#readAt > LOST_MS) void this.#read()',
    broken: 'if (this.#taken > 0 && nowMs() - this.#readAt > LOST_MS) void this.#read()',
  },
  {
    mechanism: 'state lost + clock set back',
    mistake: 'a time of grace outlasts the clock',
    file: semaphore,
    text: "call('ZADD', key, -now - alive, ahead)",
    broken: "if ahead ~= GRACE then call('ZADD', key, -now - alive, ahead) end",
  },
  {
    mechanism: 'a process that waits is killed + clock set back',
    mistake: 'its tickets keep their places until the clock has caught up',
    file: semaphore,
    text: "call('ZADD', key, -now - alive, ahead)",
    broken: "if ahead == GRACE then call('ZADD', key, -now - alive, ahead) end",
  },
  {
    mechanism: 'a refusal of the provider + a store in trouble',
    mistake: 'a pause that the store does not hear of ends its queue',
    file: pauses,
    text: 'hold(key, Math.ceil(ms), options).catch(() => {}) ?? KNOWN',
    broken: 'hold(key, Math.ceil(ms), options) ?? KNOWN',
  },
  {
    mechanism: 'a refusal of the provider + a store in trouble',
    mistake: 'a pause that the store does not know is not kept',
    file: pauses,
    text: '      if (this.pause) await outlast(this.pause, key, () => booking.options(this.stored))\n      this.#grant',
    broken: '      this.#grant',
  },
  {
    mechanism: 'a broken connection + another one',
    mistake: 'a booking is given up with its second connection',
    file: booking,
    text: '!isOutage(error) || !isWorthRepeating(error)) return this.fail(error)',
    broken:
      '!isOutage(error) || !isWorthRepeating(error) || ((error as StoreError).sent !== false && this.#timesSent > 1)) return this.fail(error)',
  },
  {
    mechanism: 'an outage + another one',
    mistake: 'bookings wait for the end of the first one alone',
    file: booking,
    text: '    clearInterval(this.#timer)\n    this.#timer = undefined\n',
    broken: '    clearInterval(this.#timer)\n',
  },
  {
    mechanism: 'a lost reply + a refusal',
    mistake: 'a booking that was refused at last says that it was not carried out before',
    file: booking,
    text: 'if (!this.#failure?.sent || error.sent) this.#failure = error',
    broken: 'this.#failure = error',
  },
  {
    mechanism: 'more calls than may be on their way + a stall',
    mistake: 'calls that took too long keep their room',
    file: channel,
    text: 'if (!call.isOverdue || this.#overdue.delete(call)) this.#inFlight--',
    broken: 'if (!call.isOverdue) this.#inFlight--',
  },
  {
    mechanism: 'more calls than may be on their way + a stall',
    mistake: 'calls are sent whose callers have had their answers',
    file: channel,
    text: '    channel.drop(this)\n    this.#settleFailed',
    broken: '    this.#settleFailed',
  },
]
