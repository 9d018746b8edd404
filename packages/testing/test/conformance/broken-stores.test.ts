import { memoryStore } from '@sluice/core'
import { decideAtOnce } from '@sluice/core/internal'
import type { Answer, Keyspace, Part, Store } from '@sluice/core/store'
import type { OpenStore } from '../../src/index.js'
import { everyPolicy } from '../../src/conformance/index.js'
import { testsOf } from './tests-of.js'

/** The keyspace, with some members replaced. */
function withMembers(keyspace: Keyspace, replaced: Partial<Keyspace>): Keyspace {
  const get = (_: Keyspace, name: keyof Keyspace): unknown => {
    if (name in replaced) return replaced[name]
    const member: unknown = keyspace[name]
    return typeof member === 'function' ? (member.bind(keyspace) as unknown) : member
  }
  return new Proxy(keyspace, { get })
}

/** A store in memory whose keyspaces have members replaced by those that `broken` returns. */
function withKeyspaces(
  broken: (keyspace: Keyspace, clock: () => number, store: Store) => Partial<Keyspace>,
): OpenStore {
  return (clock) => {
    const store = memoryStore({ clock })
    const open: Store['keyspace'] = (...limiter) => {
      const keyspace = store.keyspace(...limiter)
      return withMembers(keyspace, broken(keyspace, clock, store))
    }
    return { local: true, keyspace: open, now: () => store.now(), close: () => store.close() }
  }
}

/** A store that takes keys for each other which `fold` makes equal. */
const folding = (fold: (key: string) => string): OpenStore =>
  withKeyspaces((keyspace) => ({
    decide: (ask, key, ...call) => keyspace.decide(ask, fold(key), ...call),
    consume: undefined as never,
    correct: (change) => keyspace.correct({ ...change, key: fold(change.key) }),
  }))

/** A store that opens the same keyspace where `as` makes the same of name and shapes. */
const merging = (as: (name: string, shapes: readonly string[]) => string): OpenStore => {
  return (clock) => {
    const store = memoryStore({ clock })
    const known = new Map<string, Keyspace>()
    const open: Store['keyspace'] = (name, policies, ...others) => {
      const id = as(
        name,
        policies.map(({ shape }) => shape),
      )
      const keyspace = known.get(id) ?? store.keyspace(name, policies, ...others)
      known.set(id, keyspace)
      return keyspace
    }
    return { local: true, keyspace: open, now: () => store.now(), close: () => store.close() }
  }
}

/** By which all keys of a store go together. */
const PROGRAM = {}
const enforced = (part: Part): Part => ({ ...part, enforce: true })

const IDENTITY = 'identity > keeps apart what differs in name, shapes or key'
const DAY_US = 86_400_000_000

const STORES: readonly (readonly [fault: string, law: string, open: OpenStore])[] = [
  ['ignores the case of keys', IDENTITY, folding((key) => key.toLowerCase())],
  ['ignores accents', IDENTITY, folding((key) => key.normalize('NFD').replaceAll(/\p{Mn}/gu, ''))],
  ['composes keys', IDENTITY, folding((key) => key.normalize())],
  ['ignores space at the end', IDENTITY, folding((key) => key.replace(/ +$/, ''))],
  ['ends keys at NUL', IDENTITY, folding((key) => key.split('\0')[0]!)],
  ['cuts keys at 64 characters', IDENTITY, folding((key) => key.slice(0, 64))],
  ['cuts keys at 127 characters', IDENTITY, folding((key) => key.slice(0, 127))],
  [
    'cuts keys at 255 bytes',
    IDENTITY,
    folding((key) => Buffer.from(key).subarray(0, 255).toString('latin1')),
  ],
  ['keeps keys in UTF-8', IDENTITY, folding((key) => Buffer.from(key).toString())],
  ['takes keys for numbers', IDENTITY, folding((key) => (/^\d+$/.test(key) ? String(Number(key)) : key))],
  ['ignores names', IDENTITY, merging((_, shapes) => shapes.join())],
  [
    'ignores the case of names',
    IDENTITY,
    merging((name, shapes) => `${name.toLowerCase()} ${shapes.join()}`),
  ],
  ['ignores shapes', IDENTITY, merging((name) => name)],
  ['ignores the order of shapes', IDENTITY, merging((name, shapes) => `${name} ${shapes.toSorted().join()}`)],
  [
    'corrects keys without regard to case',
    IDENTITY,
    withKeyspaces((keyspace) => ({
      correct: (change) => keyspace.correct({ ...change, key: change.key.toLowerCase() }),
    })),
  ],
  [
    'puts key and name together without a mark',
    IDENTITY,
    (clock) => {
      const store = memoryStore({ clock })
      const open: Store['keyspace'] = (name, ...limiter) => {
        const keyspace = store.keyspace('all', ...limiter)
        return withMembers(keyspace, {
          decide: (ask, key, ...call) => keyspace.decide(ask, name + key, ...call),
          correct: (change) => keyspace.correct({ ...change, key: name + change.key }),
        })
      }
      return { local: true, keyspace: open, now: () => store.now(), close: () => store.close() }
    },
  ],
  [
    'charges nothing beside other units where a call may not wait',
    'gcra > decides a plain call as a booking that may not wait',
    withKeyspaces((keyspace) => ({
      decide: (ask, key, cost, ...wait) => {
        const { remaining } = keyspace.decide('peek', key, 1, 0) as { remaining: number }
        const isUsed = remaining < keyspace.policies[0]!.capacity
        return keyspace.decide(ask === 'consume' && isUsed ? 'peek' : ask, key, cost, ...wait)
      },
    })),
  ],
  [
    'counts no refusal of a try',
    'gcra > counts a try that is refused',
    withKeyspaces((keyspace) => ({
      decide: (ask, ...call) => keyspace.decide(ask === 'try' ? 'peek' : ask, ...call),
    })),
  ],
  [
    'counts the refusal of a commit',
    'gcra > counts no other call',
    withKeyspaces((keyspace) => ({
      decide: (ask, ...call) => keyspace.decide(ask === 'commit' ? 'consume' : ask, ...call),
    })),
  ],
  [
    'enforces parts that only watch',
    'gcra > denies no whole for a part that only watches, which is charged if it fits',
    withKeyspaces(() => ({
      together: { program: PROGRAM, decide: (parts) => decideAtOnce(parts.map(enforced)) },
    })),
  ],
  [
    'counts no refusal of a whole',
    'gcra > counts a refused part of a whole for its penalty, and no other part',
    withKeyspaces(() => ({
      together: {
        program: PROGRAM,
        decide: (parts) => {
          const peeked = parts.map((part) => part.keyspace.decide('peek', part.key, part.cost, 0) as Answer)
          return peeked.some(({ reason }) => reason) ? peeked : decideAtOnce(parts)
        },
      },
    })),
  ],
  [
    'says less of a charge than counts',
    'gcra > says with a charge what counts after it, if it says that',
    withKeyspaces((keyspace) => ({
      correct: (change) => {
        if (change.kind !== 'charge' || !change.counted) return keyspace.correct(change)
        const { counted } = change
        return keyspace.correct({
          ...change,
          counted: ([now, used, ...rest]) => counted([now!, used! - 1, ...rest]),
        })
      },
    })),
  ],
  [
    'forgets a key where the clock is set back',
    'gcra > keeps what was consumed while the clock is set back by less than a window',
    withKeyspaces((keyspace, clock) => {
      let latest = 0
      return {
        decide: (ask, key, ...call) => {
          if (clock() < latest) void keyspace.correct({ kind: 'reset', key })
          latest = Math.max(latest, clock())
          return keyspace.decide(ask, key, ...call)
        },
      }
    }),
  ],
]

// The seed is given, so that a law that finds a fault by chance finds it in each run.
const SEED = { CONFORMANCE_SEED: '1' }

it.each(STORES)('a store that %s is found', async (_, title, open) => {
  const test = (store: OpenStore) => testsOf(store, { sequences: 5000 }, SEED).get(title)!()
  await test((clock) => memoryStore({ clock }))
  await expect(async () => test(open)).rejects.toThrow('Property failed')
})

describe('a calendar', () => {
  afterEach(() => jest.restoreAllMocks())
  const DAILY = 'calendar-window, anchor 2025-01-31T02:30, every day, timeZone Europe/Berlin'
  const [, daily] = everyPolicy({ limit: 1, window: 86_400_000 }).find(([title]) => title === DAILY)!
  const test = (title: string) =>
    testsOf((clock) => memoryStore({ clock }), { sequences: 10_000 }, SEED).get(title)!()

  it('of which each day has 24 hours is found', async () => {
    const calendar = Object.getPrototypeOf(daily.calendar) as typeof daily.calendar & object
    const { around } = calendar
    jest.spyOn(calendar, 'around').mockImplementation(function (this: typeof calendar, instant) {
      if (this.every !== 'day') return around.call(this, instant)
      const [, first] = around.call(this, 1.7e15)
      const start = first! + Math.floor((instant - first!) / DAY_US) * DAY_US
      return [-1, 0, 1, 2].map((days) => start + days * DAY_US)
    })
    await expect(async () => test(`answers as the model does > for ${DAILY}`)).rejects.toThrow(
      'Property failed',
    )
  })

  it('whose reach is without what the clocks are moved is found', async () => {
    const { bounds } = daily.algorithm
    jest.spyOn(bounds, 'reach').mockImplementation(({ window }) => window)
    const title = 'denies nothing to a key that asks for its capacity in each reach at most'
    await expect(async () => test(`${DAILY} > ${title}`)).rejects.toThrow('Property failed')
  })
})
