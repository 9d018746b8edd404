import type { Law } from './law.js'
import { type Arrival, isFetched } from './provider.js'
import { partsOfKey } from './server.js'
import type { History } from './simulation.js'
import { callOf } from './twin.js'

/** A pause of unstated length lasts at least so long: a second, less up to a quarter at random. */
const LEAST_PAUSE_US = 750_000
/** Timers are whole milliseconds. */
const TIMER_US = 2000
/** A shorter wait counts as none that is stated, from the second refusal in a row on. */
const LEAST_STATED_MS = 100

/** Laws about the pauses of a provider that says not how long, as a process hears its answers. */
export const PAUSING: readonly Law[] = [
  {
    name: 'a 429 that states no wait pauses the key of its process, any other refusal as the second in a row',
    source: 'Without a stated wait a 429 pauses the key, a 503 or 529 when it is the second in a row',
    *breaches({ provider }, count) {
      for (const own of heardBy(provider.arrivals)) {
        for (const refused of own.heard) {
          if (!pauses(refused, own)) continue
          count(1)
          const early = own.sent.find(
            ({ at }) => at > refused.heardAt! && at < refused.heardAt! + LEAST_PAUSE_US - TIMER_US,
          )
          if (early)
            yield `call ${early.call} of ${early.process} went out ${early.at - refused.heardAt!} us after the refusal of ${refused.call}`
        }
      }
    },
  },
  {
    name: 'a single refusal of an overload pauses no key, nor a second one that was under way with it',
    source: 'a 503 or 529 when it is the second in a row',
    *breaches(history, count) {
      const held = holdsOf(history)
      for (const own of heardBy(history.provider.arrivals)) {
        for (const [i, refused] of own.heard.entries()) {
          const [before, other] = [own.heard[i - 1], own.heard[i - 2]]
          const isStray =
            isOverload(refused) && !refused.waitMs && !isRefusal(before) && isFresh(before, refused)
          const isWithStray =
            isOverload(refused) &&
            !refused.waitMs &&
            before !== undefined &&
            isOverload(before) &&
            refused.at < before.heardAt! &&
            !isRefusal(other) &&
            isFresh(other, refused)
          // After a long turn several are heard at once, and the pause may be due to another.
          const isHeardAlone = own.heard.every(
            (each) => each === refused || !isRefusal(each) || each.heardAt !== refused.heardAt,
          )
          if ((!isStray && !isWithStray) || !isHeardAlone) continue
          count(1)
          if (held(refused.process, refused.heardAt!, refused.heardAt!))
            yield `${refused.process} holds the key for the refusal of ${refused.call} alone`
        }
        /**
         * Whether no pause began between an answer's call and a refusal, so that the answer has ended the row. A process pauses also
         * where the server does not take its hold.
         */
        function isFresh(served: Arrival | undefined, refused: Arrival): boolean {
          const from = served?.at ?? 0
          const hasPaused = own.heard.some(
            (each) =>
              each.heardAt! >= from &&
              each.heardAt! < refused.heardAt! &&
              ((each.waitMs ?? 0) > 0 || pauses(each, own)),
          )
          return !hasPaused && !held(refused.process, from, refused.heardAt! - 1)
        }
      }
    },
  },
  {
    name: 'calls go out again once the provider refuses none, and the longest pause is over',
    source: 'Such pauses take a second, doubled up to a minute',
    *breaches({ provider, late }, count) {
      const refused = provider.arrivals.filter(({ status }) => status !== 200)
      const last = Math.max(0, ...refused.map((each) => each.heardAt ?? each.at))
      const inARow = Math.max(0, ...heardBy(refused).map(({ sent }) => sent.length))
      for (const { call, startedAt, member, error } of late) {
        if (call.does !== 'send' || startedAt < last + 1_000_000 * 2 ** inARow) continue
        count(1)
        if (error !== undefined) yield `call ${call.id} of ${member.name}: ${error}`
      }
    },
  },
  {
    name: 'after a pause one call goes out, and the others wait for its answer',
    source: 'a 429/503/529 with Retry-After or RateLimit headers holds the shared key for every instance',
    *breaches({ provider }, count) {
      for (const own of heardBy(provider.arrivals)) {
        for (const refused of own.heard) {
          if (!pauses(refused, own) && !((refused.waitMs ?? 0) >= LEAST_STATED_MS)) continue
          const [first, second] = own.sent.filter(({ at }) => at > refused.heardAt!)
          if (!first || !second) continue
          const isPausedAgain = own.heard.some(
            (each) => isRefusal(each) && each.heardAt! > refused.heardAt! && each.heardAt! <= second.at,
          )
          if (isPausedAgain) continue
          count(1)
          const answeredAt = Math.min(first.endedAt, first.at + LEAST_PAUSE_US)
          if (second.at < answeredAt - TIMER_US)
            yield `call ${second.call} of ${second.process} went out ${answeredAt - second.at} us before the answer to ${first.call}`
        }
      }
    },
  },
]

/** The attempts of one process: in the order in which they went out, and in which their answers were heard. */
interface Own {
  readonly sent: readonly Arrival[]
  readonly heard: readonly Arrival[]
}

function heardBy(arrivals: readonly Arrival[]): Own[] {
  return [...new Set(arrivals.map(({ process }) => process))].map((process) => {
    const sent = arrivals.filter((each) => each.process === process)
    const heard = sent.filter(({ heardAt }) => heardAt !== undefined)
    return { sent, heard: heard.toSorted((a, b) => a.heardAt! - b.heardAt!) }
  })
}

function isRefusal(arrival: Arrival | undefined): boolean {
  return arrival?.status === 429 || arrival?.status === 503
}

/** A refusal that a queue of functions hears says nothing about a limit. */
function isOverload(arrival: Arrival): boolean {
  return isRefusal(arrival) && !(arrival.status === 429 && isFetched(arrival.call))
}

/** Whether a refusal without a stated wait surely pauses the key: no other one was heard while its call was under way. */
function pauses(refused: Arrival, { heard }: Own): boolean {
  if (!isRefusal(refused) || (refused.waitMs ?? 0) >= LEAST_STATED_MS) return false
  const isAlone = !heard.some(
    (each) =>
      each !== refused && isRefusal(each) && each.heardAt! >= refused.at && each.heardAt! <= refused.heardAt!,
  )
  const before = heard[heard.indexOf(refused) - 1]
  const isSecond = isRefusal(before) && before!.heardAt! < refused.at
  return isAlone && (isSecond || (!isOverload(refused) && refused.waitMs === undefined))
}

/** Whether a process held the key of the provider between two instants. */
function holdsOf({ server }: History): (process: string, from: number, to: number) => boolean {
  const holds = server.executions.flatMap(({ keys, args, process, sentAt }) =>
    keys.some(
      (key, i) =>
        partsOfKey(key).limiter === 'turns' && callOf(args[i] ?? args.at(-1)!, 1).operation === 'hold',
    )
      ? [{ process, sentAt }]
      : [],
  )
  return (process, from, to) =>
    holds.some((each) => each.process === process && each.sentAt >= from && each.sentAt <= to)
}
