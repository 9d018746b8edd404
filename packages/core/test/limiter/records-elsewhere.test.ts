import { FakeClock, installFakeClock } from '@sluice/testing'
import {
  createLimiter,
  fixedWindow,
  type Limiter,
  type LimiterOptions,
  memoryStore,
} from '../../src/index.js'
import { slidingLog, type Store, StoreError } from '../../src/index.js'
import { guard } from '../../src/leases/leased-store.js'

const WHO = { reason: 'a campaign', by: 'ops' }
const policies = [fixedWindow({ limit: 100, window: '1d' })]
const raise = { limit: 500, until: '1h', ...WHO } as const

/** What a process does with its store: it reads or writes records, decides, or corrects a state. */
type Act = 'read' | 'write' | 'decide' | 'correct'

/** What happens as the store gets an act and as the process gets its answer; what throws fails the act. */
interface Way {
  there?(act: Act): unknown
  back?(act: Act): unknown
}

let clock: FakeClock
let memory: Store
let time: ReturnType<typeof installFakeClock>
const opened: Limiter[] = []
beforeEach(() => {
  time = installFakeClock()
  clock = new FakeClock()
  memory = memoryStore({ clock: clock.now })
})
afterEach(async () => {
  for (const limiter of opened.splice(0)) await limiter.close()
  time.restore()
})

/** A store elsewhere that all processes share, as one of them reaches it on a way of its own. */
function storeOn(way: Way, more: Partial<Store> = {}): Store {
  const reached = async <T>(act: Act, carryOut: () => T): Promise<Awaited<T>> => {
    await way.there?.(act)
    const answer = await carryOut()
    await way.back?.(act)
    return answer
  }
  return {
    guard,
    now: clock.now,
    close() {},
    records: () => {
      const records = memory.records!()
      return {
        read: (since, seen) => reached('read', () => records.read(since, [...seen])),
        // As where a write and what it returns are two statements.
        write: async (record, since) => {
          const written = await reached('write', () => records.write(record, since))
          return written && { ...written, ...(await records.read(since, [])) }
        },
      }
    },
    keyspace: (...args) => {
      const state = memory.keyspace(...args)
      return {
        policies: state.policies,
        penalty: state.penalty,
        decide: (...asked) => reached('decide', () => state.decide(...asked)),
        correct: (change) => reached('correct', () => state.correct(change)),
        confirm: (booking) => state.confirm(booking),
        cancel: (booking) => state.cancel(booking),
      }
    },
    ...more,
  }
}

function processOn(way: Way = {}, options: Partial<LimiterOptions> = {}, more: Partial<Store> = {}): Limiter {
  const store = storeOn(way, more)
  const limiter = createLimiter({
    name: 'api',
    policies,
    store,
    onStoreError: 'throw',
    deadline: '1m',
    ...options,
  })
  opened.push(limiter)
  return limiter
}

/** Lets time pass on both clocks, in steps of the readings. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) {
    clock.pass(Math.min(1000, left))
    await time.pass(Math.min(1000, left))
  }
}

const down = () => {
  throw new StoreError('STORE_UNAVAILABLE', 'it is down')
}
const isRecord = (act: Act) => act === 'read' || act === 'write'

it('an override ends at its end though the last answer before an outage came late', async () => {
  const way: Way = {}
  const limiter = processOn(way)
  await limiter.override('a', { ...raise, until: '6s' })
  await pass(1000)
  way.back = (act) => {
    if (!isRecord(act)) return
    clock.pass(4000)
    way.there = (each) => isRecord(each) && down()
  }
  await time.pass(1000)
  expect((await limiter.peek('a')).limit).toBe(500)
  clock.pass(1000)
  expect((await limiter.peek('a')).limit).toBe(100)
})

it('a block can be ended whose record the store has dropped, and whose end lies ahead again as the clock was set back', async () => {
  let [ahead, acts, isCut] = [0, 0, false]
  const now = () => clock.now() + ahead
  memory = memoryStore({ clock: now })
  /** As a store whose clock may be set back. */
  const records = (isOther: boolean): NonNullable<Store['records']> => {
    const all = memory.records!()
    const reached = async <T>(act: () => T) => {
      if (isOther && (isCut || ++acts > 20)) down()
      const changes = await act()
      return changes && { ...changes, now: now() }
    }
    return () => ({
      read: (since, seen) => reached(() => all.read(since, [...seen])),
      write: (record, since) => reached(() => all.write(record, since)),
    })
  }
  const [own, other] = [false, true].map((is) => processOn({}, {}, { now, records: records(is) }))
  await other!.peek('a')
  await own!.block('a', '2s', WHO)
  await pass(1000)
  isCut = true
  ahead = 10_000_000
  await pass(1000)
  ;[ahead, isCut] = [-5_000_000, false]
  await pass(1000)
  acts = 0
  await other!.unblock('a')
  expect((await other!.explain('a')).block).toBeUndefined()
})

it('what a failed read reports is reported again: that a record has applied, and that it has ended', async () => {
  const way: Way = {}
  const limiter = processOn(way)
  await limiter.override('a', raise)
  await limiter.override('b', { ...raise, until: '2s' })
  await limiter.consume('a')
  way.there = (act) => isRecord(act) && down()
  await pass(5000)
  way.there = () => {}
  await pass(1000)
  expect(
    (await limiter.overrides()).map(({ key, lastAppliedAt }) => [key, lastAppliedAt !== undefined]),
  ).toEqual([['a', true]])
  const { records } = await memory.records!().read(0, [])
  expect(records.map(({ id }) => id)).toEqual(['override api\n"a"'])
})

it('needs force where the store does not say what is in use', async () => {
  const way: Way = {}
  const limiter = processOn(way, { onStoreError: 'allow' })
  await limiter.consume('a', { cost: 80 })
  way.there = (act) => act === 'decide' && down()
  const lower = { ...raise, limit: 10 }
  await expect(limiter.override('a', lower)).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringMatching(/does not say what 'a' has used.*pass force: true/) as string,
  })
  expect(await limiter.overrides()).toEqual([])
  await limiter.override('a', { ...lower, force: true })
  await limiter.override('a', { exempt: true, until: '1h', ...WHO })
})

it('is in force where the refusals of a penalty cannot be cleared', async () => {
  const way: Way = {}
  const limiter = processOn(way)
  way.there = (act) => act === 'correct' && down()
  await limiter.override('a', raise)
  expect((await limiter.peek('a')).limit).toBe(500)
})

it('first calls wait for a read that has no answer as long as for a connection', async () => {
  const limiter = processOn(
    { back: (act) => (act === 'read' ? new Promise(() => {}) : undefined) },
    {},
    { startTimeout: 20 },
  )
  expect((await limiter.consume('a')).limit).toBe(100)
})

it('a raise acts on a key whose denials a process remembers', async () => {
  const asked: Act[] = []
  const way: Way = { there: (act) => asked.push(act) }
  const limiter = processOn(way, {}, { denialCache: { maxAge: 60_000_000, maxKeys: 100 } })
  await limiter.consume('a', { cost: 100 })
  await limiter.consume('a')
  asked.length = 0
  expect((await limiter.consume('a')).allowed).toBe(false)
  expect(asked).toEqual([])
  await processOn().override('a', raise)
  await pass(1000)
  expect(await limiter.consume('a')).toMatchObject({ allowed: true, limit: 500 })
})

it('no lease that was taken before serves a process that knows the override, and the list says for how long others', async () => {
  const limiter = processOn({}, { leases: { ttl: '5s', size: 20 } })
  for (let i = 0; i < 30; i++) await limiter.consume('a')
  const made = await limiter.override('a', { ...raise, limit: 10, force: true })
  expect(made.leaseMs).toBe(5000)
  expect(await limiter.consume('a')).toMatchObject({ allowed: false, limit: 10 })
  await processOn().override('a', raise)
  await pass(1000)
  expect(await limiter.consume('a')).toMatchObject({ allowed: true, limit: 500 })
})

describe('processes that block, hold and release a key at once', () => {
  const who = (by: string) => ({ reason: 'a race', by })

  /** The ends of the state's block, its record, the state's hold and its record, on the clock of the store; undefined for none. */
  async function ends(): Promise<readonly (number | undefined)[]> {
    const limiter = processOn()
    const records = await limiter.overrides()
    const recordOf = (kind: string) => records.find((each) => each.kind === kind)?.until.getTime()
    const blocked = (await limiter.explain('a')).block?.until.getTime()
    // Behind a block no hold is seen.
    await memory.keyspace('api', policies, () => {}).correct({ kind: 'block', key: 'a', duration: 0 })
    const { reason, retryAfterMs } = await limiter.peek('a')
    const held = reason === 'held' ? clock.now() / 1000 + retryAfterMs : undefined
    return [blocked, recordOf('block'), held, recordOf('hold')]
  }

  const block = (limiter: Limiter) => limiter.block('a', '1h', who('one'))
  const blockLonger = (limiter: Limiter) => limiter.block('a', '2h', who('another'))
  const hold = (limiter: Limiter) => limiter.hold('a', '1h', who('one'))
  const unblock = (limiter: Limiter) => limiter.unblock('a')
  const reset = (limiter: Limiter) => limiter.reset('a')
  const races = [block, unblock, reset, hold].flatMap((one) =>
    [blockLonger, unblock, reset, ...(one === hold ? [] : [hold])].map(
      (other) => [one.name, other.name, one, other] as const,
    ),
  )
  const before = {
    none: async () => {},
    block: async (limiter: Limiter) => limiter.block('a', '3h', who('before')),
    hold: async (limiter: Limiter) => limiter.hold('a', '3h', who('before')),
  }
  it.each(races)(
    'leave no state without its record, wherever the other comes in: %s and %s',
    async (_one, _other, one, other) => {
      for (const way of ['there', 'back'] as const) {
        for (const [was, begin] of Object.entries(before)) {
          for (let nth = 1, isReached = true; isReached; nth++) {
            memory = memoryStore({ clock: clock.now })
            isReached = false
            let left = nth
            const another = processOn()
            const meanwhile = (): unknown => {
              if (--left !== 0) return undefined
              isReached = true
              return other(another)
            }
            await begin(another)
            await one(processOn({ [way]: meanwhile }))
            const [blocked, blockRecord, held, holdRecord] = await ends()
            expect([way, was, nth, blocked, held]).toEqual([way, was, nth, blockRecord, holdRecord])
          }
        }
      }
    },
  )

  it('an act changes the state again after a record, and reads the records last', async () => {
    const asked: Act[] = []
    const limiter = processOn({ there: (act) => asked.push(act) })
    await limiter.consume('a')
    const actsOf = async (act: () => Promise<void>) => {
      asked.length = 0
      await act()
      return asked.join(' ')
    }
    expect([
      await actsOf(() => limiter.block('a', '1h')),
      await actsOf(() => limiter.unblock('a')),
      await actsOf(() => limiter.unblock('a')),
      await actsOf(() => limiter.reset('a')),
      await actsOf(() => limiter.hold('a', '1h')),
    ]).toEqual([
      'write correct correct read',
      'write correct correct read',
      'correct read',
      'correct read',
      'correct',
    ])
  })

  it('what another process has blocked a moment ago is reset, before a reading has told of it', async () => {
    const limiter = processOn()
    await limiter.consume('a')
    await processOn().block('a', '1h', who('another'))
    await limiter.reset('a')
    expect(await ends()).toEqual([undefined, undefined, undefined, undefined])
  })

  it('a hold that has ended before its record is read again is not made anew', async () => {
    const limiter = processOn({ back: (act) => act === 'correct' && clock.pass(20) })
    await limiter.hold('a', 10, who('one'))
    expect(await limiter.overrides()).toEqual([])
  })

  it('an act rejects where its record cannot be read again, and has denied by then', async () => {
    const way: Way = {}
    const limiter = processOn(way)
    await limiter.consume('a')
    way.there = (act) => act === 'read' && down()
    await expect(limiter.block('a', '1h')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect((await limiter.peek('a')).reason).toBe('blocked')
  })

  it('a state is blocked and released though its record cannot be written, and the act rejects', async () => {
    const way: Way = { there: (act) => act === 'write' && down() }
    const limiter = processOn(way)
    await expect(limiter.block('a', '1h')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect((await limiter.peek('a')).reason).toBe('blocked')
    await processOn().block('a', '1h')
    await pass(1000)
    await expect(limiter.unblock('a')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect((await limiter.peek('a')).allowed).toBe(true)
  })
})

it('reaches a call that waits for reserved units at its next question', async () => {
  const own = createLimiter({
    name: 'waits',
    policies: [slidingLog({ limit: 1, window: '1h' })],
    store: memory,
    reservations: {},
  })
  opened.push(own)
  await own.reserve('a', { cost: 1, ttl: '1h', atEnd: 1 })
  const acquired = own.acquire('a', { maxWait: '5m' })
  const reserved = own.reserve('a', { cost: 1, ttl: '1h', atEnd: 1, maxWait: '5m' })
  await pass(2000)
  expect(own.waiting).toBe(2)
  await own.override('a', { limit: 3, until: '1h', ...WHO })
  await pass(1000)
  for (const decision of await Promise.all([acquired, reserved])) {
    expect(decision).toMatchObject({ allowed: true, limit: 3 })
    expect(decision.policies[0]!.rule).toBe('override')
  }
})
