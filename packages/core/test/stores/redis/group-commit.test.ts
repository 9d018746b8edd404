import { storeError } from '../../../src/stores/redis/clients/failure.js'
import type { Replies } from '../../../src/stores/redis/script/runner.js'
import { NumberReader } from '../../../src/stores/redis/script/wire.js'
import type { RedisConnection, RedisKey } from '../../../src/stores/redis/redis-connection.js'
import type { Receiver } from '../../../src/stores/store.js'
import { GroupCommit, type GroupCommitOptions } from '../../../src/stores/redis/group-commit.js'
import type { ScriptCall } from '../../../src/stores/redis/script-call.js'
import { NotingCaller } from '../noting-caller.js'

/** A call that asks something about a key, and what came of it. */
class Asked implements ScriptCall {
  duplicates: Asked[] | undefined
  readonly caller = new NotingCaller()
  outcome: unknown

  readonly callerKey: string

  constructor(
    readonly key: string,
    readonly question = 'consume',
    readonly units = 1,
    readonly keyspace = 'a keyspace',
    readonly tag = '',
  ) {
    this.callerKey = key.replace(`${keyspace}:`, '')
  }

  sharesArgument(other: Asked): boolean {
    return this.question === other.question
  }

  lead(duplicates: Asked[]): void {
    this.duplicates = duplicates
  }

  addTo(keys: string[], args?: Buffer[]): void {
    keys.push(this.key)
    args?.push(Buffer.from(`${this.question} x${1 + (this.duplicates?.length ?? 0)}`))
  }

  answer(reply: Buffer): void {
    for (const call of [this, ...(this.duplicates ?? [])]) call.outcome = reply.toString()
  }

  answerPlain(reply: NumberReader): void {
    for (const call of [this, ...(this.duplicates ?? [])]) call.outcome = reply.passed(1).remaining
  }

  fail(error: unknown): void {
    this.outcome = error
  }
}

interface Sent {
  /** `key: argument`, for each. */
  readonly calls: readonly string[]
  /** Arguments that were sent. Keys beyond the last share it. */
  readonly args: number
  /** Answers every key, or fails as a whole. */
  reply(...replies: (string | Error)[]): void
  /** Answers with numbers in one piece, and with these behind them. */
  pack(numbers: readonly number[], ...own: string[]): void
  fail(error: Error): void
}

/** A way to Redis that keeps what it is given, and turns of the event loop that end when the test says so. */
function way({ takesManyKeys = true, ...options }: GroupCommitOptions & { takesManyKeys?: boolean } = {}) {
  const sent: Sent[] = []
  /** How many calls each write took along. */
  const writes: number[] = []
  let tasks: (() => void)[] = []
  const runner = {
    get takesManyKeys() {
      return takesManyKeys
    },
    connection: {
      inOneWrite(sendAll: () => void) {
        const before = sent.length
        sendAll()
        writes.push(sent.length - before)
      },
    } as RedisConnection,
    runAll(_: string, keys: readonly RedisKey[], args: readonly Uint8Array[], receiver: Receiver<Replies>) {
      sent.push({
        calls: keys.map((key, i) => `${key.toString()}: ${Buffer.from(args[i] ?? args.at(-1)!).toString()}`),
        args: args.length,
        reply(...replies) {
          const given = replies.length > 0 ? replies : keys.map(() => 'done')
          const own = given.map((each) => (each instanceof Error ? each : Buffer.from(each)))
          receiver.answered({ packed: undefined, own })
        },
        pack(numbers, ...own) {
          const packed = new NumberReader(new Uint8Array(Float64Array.from(numbers).buffer), true)
          receiver.answered({ packed, own: own.map((each) => Buffer.from(each)) })
        },
        fail: (error) => receiver.failed(error),
      })
    },
  }
  const group = new GroupCommit(runner, 'script', { ...options, atTurnEnd: (task) => tasks.push(task) })
  return {
    group,
    sent,
    writes,
    add(...calls: Asked[]) {
      for (const call of calls) group.add(call)
      return calls
    },
    endTurn() {
      const due = tasks
      tasks = []
      for (const task of due) task()
    },
    refuseManyKeys() {
      takesManyKeys = false
    },
    /** The calls of everything that was sent. */
    calls: () => sent.map(({ calls }) => calls),
  }
}

/** How the store reports a batch whose keys lie in several slots. */
const crossSlot = storeError(new Error("CROSSSLOT Keys in request don't hash to the same slot"))

const ask = (...keys: string[]) => keys.map((key) => new Asked(key))
const many = (count: number, name = 'key') =>
  Array.from({ length: count }, (_, i) => new Asked(`${name} ${i}`))

/** So many calls are sent at once, each by itself. */
const FEW = 10
const few = () => many(FEW, 'first')
/** So many more batches may then be in flight. */
const ROOM = 16 - FEW

/** A way on which so many calls are in flight that the next ones gather. */
function busyWay(options = {}) {
  const made = way(options)
  made.add(...few())
  made.sent.length = 0
  return made
}

describe('a call', () => {
  it('is sent at once while few are in flight', () => {
    const { add, calls } = way()
    const first = add(...few())
    expect(calls()).toEqual(first.map(({ key }) => [`${key}: consume x1`]))
  })

  it('waits until the end of the turn to be combined with others while more are in flight', () => {
    const { add, calls, endTurn } = busyWay()
    add(...ask('e', 'f'))
    expect(calls()).toEqual([])
    endTurn()
    expect(calls()).toEqual([['e: consume x1', 'f: consume x1']])
    add(...ask('g'))
    endTurn()
    expect(calls()[1]).toEqual(['g: consume x1'])
  })

  it('waits until the end of a turn in which a batch came back, as its callers ask again', () => {
    const { add, calls, sent, endTurn } = way()
    add(...few(), ...many(10))
    endTurn()
    for (const { reply } of sent) reply()
    add(...many(1, 'again'))
    expect(calls().map(({ length }) => length)).toEqual([...few().map(() => 1), 5, 5])
    endTurn()
    expect(calls().at(-1)).toEqual(['again 0: consume x1'])
  })

  it('is sent at once again in the turn after one in which a batch came back', () => {
    const { add, calls, sent, endTurn } = way()
    add(...few(), ...many(10))
    endTurn()
    for (const { reply } of sent) reply()
    endTurn()
    add(...ask('alone'))
    expect(calls().at(-1)).toEqual(['alone: consume x1'])
  })

  it('resolves with the reply for its own key', () => {
    const { add, sent, endTurn } = busyWay()
    const [e, f] = add(...ask('e', 'f'))
    endTurn()
    sent[0]!.reply('for e', 'for f')
    expect([e!.outcome, f!.outcome]).toEqual(['for e', 'for f'])
  })

  it('never overtakes a waiting call, even once few are in flight', () => {
    const { add, calls, sent, endTurn } = way()
    const first = add(...few())
    add(...ask('e'))
    for (const { reply } of sent) reply()
    add(new Asked('e', 'reset'))
    endTurn()
    expect(calls().slice(first.length)).toEqual([['e: consume x1'], ['e: reset x1']])
  })

  it('that fails in the script leaves the other calls their replies', () => {
    const { add, sent, endTurn } = busyWay()
    const [e, f] = add(...ask('e', 'f'))
    endTurn()
    const broken = new Error('broken')
    sent[0]!.reply(broken, 'for f')
    expect([e!.outcome, f!.outcome]).toEqual([broken, 'for f'])
  })

  it('gets its part of a reply in one piece, or the reply of its own behind it', () => {
    const { add, sent, endTurn } = busyWay()
    const [e, f, g] = add(...ask('e', 'f', 'g'))
    endTurn()
    sent[0]!.pack([1000, 7, 1001, -1, 8, 1002], 'for f')
    expect([e, f, g].map((call) => call!.outcome)).toEqual([7, 'for f', 8])
  })

  it('fails alone where its part of a reply is missing', () => {
    const { add, sent, endTurn } = busyWay()
    const [e, f] = add(...ask('e', 'f'))
    endTurn()
    sent[0]!.pack([1000, 7, 1001])
    expect(e!.outcome).toBe(7)
    expect(f!.outcome).toBeInstanceOf(RangeError)
  })

  it('is sent immediately on its own with gathers: false', () => {
    const { add, calls } = way({ gathers: false })
    add(...many(100), ...ask('key 0'))
    expect(calls()).toHaveLength(101)
  })
})

describe('a batch', () => {
  it('holds 64 keys, and is sent before the turn ends once it is full', () => {
    const { add, calls, endTurn } = busyWay()
    add(...many(130))
    expect(calls().map(({ length }) => length)).toEqual([64, 64])
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([64, 64, 2])
  })

  it('holds a quarter of all pending calls, but at least 2', () => {
    const { add, calls, endTurn } = busyWay()
    add(...many(2))
    endTurn()
    add(...many(42, 'more'))
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([2, 14, 14, 14])
    add(...many(10, 'late'))
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([2, 14, 14, 14, 10])
    expect(new Set(calls().flat()).size).toBe(54)
  })

  it('holds half of more than 64 pending calls', () => {
    const { add, calls, sent, endTurn } = busyWay()
    add(...many(55))
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([28, 27])
    for (const { reply } of sent) reply()
    add(...many(60, 'again'))
    expect(calls().map(({ length }) => length)).toEqual([28, 27, 33])
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([28, 27, 33, 27])
  })

  it('is sent before the turn ends once it holds a quarter of the calls that were just answered', () => {
    const { add, calls, sent, endTurn } = busyWay()
    add(...many(54))
    endTurn()
    for (const { reply } of sent) reply()
    add(...many(40, 'again'))
    expect(calls().map(({ length }) => length)).toEqual([14, 14, 14, 12, 16, 16])
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([14, 14, 14, 12, 16, 16, 8])
  })

  it('leaves room for all others of the turn where few callers were answered and many ask', () => {
    const { add, calls, sent, endTurn } = way()
    add(...few(), ...many(4))
    endTurn()
    for (const { reply } of sent.splice(0)) reply()
    add(...many(200, 'again'))
    endTurn()
    expect(new Set(calls().flat()).size).toBe(200)
    expect(calls().length).toBeLessThanOrEqual(16)
  })

  it('holds 1,000 units, or one call with more', () => {
    const { add, calls, endTurn } = busyWay()
    add(...[600, 300, 200, 5000, 1].map((units, i) => new Asked(`${units}-${i}`, 'consume', units)))
    endTurn()
    const sizes = calls().map((batch) => batch.map((call) => Number(call.split('-')[0])))
    expect(sizes).toEqual([[600, 300, 1], [200], [5000]])
  })

  it('that fails rejects all of its calls with the same error, and is not sent again', () => {
    const { add, sent, endTurn } = busyWay()
    const asked = add(...ask('e', 'f', 'f'))
    endTurn()
    const gone = new Error('connection lost')
    sent[0]!.fail(gone)
    endTurn()
    expect(asked.map(({ outcome }) => outcome)).toEqual([gone, gone, gone])
    expect(sent).toHaveLength(1)
  })

  it('waits while 16 are in flight, until one of them returns', () => {
    const { add, sent, endTurn } = busyWay()
    for (let i = 0; i < ROOM; i++) {
      add(...ask(`batch ${i}`))
      endTurn()
    }
    add(...many(100, 'late'))
    endTurn()
    expect(sent).toHaveLength(ROOM)
    sent[3]!.reply()
    expect(sent.map(({ calls }) => calls.length).slice(ROOM)).toEqual([64])
    sent[4]!.fail(new Error('no'))
    expect(sent.map(({ calls }) => calls.length).slice(ROOM)).toEqual([64, 36])
  })

  it('sends an argument once for all keys that share it, and resolves each call', () => {
    const { add, calls, sent, endTurn } = busyWay()
    add(...many(10)) // with so many in flight, six calls are no more than a quarter
    endTurn()
    sent.length = 0
    const asked = add(...ask('e', 'f'), new Asked('g', 'reset'), ...ask('h', 'h', 'i'))
    endTurn()
    const sharing = ['e', 'f', 'i'].map((key) => `${key}: consume x1`)
    expect(calls()[0]).toEqual(['g: reset x1', 'h: consume x2', ...sharing])
    expect(sent[0]!.args).toBe(3)
    sent[0]!.reply('for g', 'for h', 'for e', 'for f', 'for i')
    expect(asked.map(({ key, outcome }) => outcome === `for ${key}`)).not.toContain(false)
  })
})

describe('a batch without an outcome for a minute', () => {
  /** A busy way with a clock that `at` sets. */
  function busyWayAt() {
    let time = 0
    return { ...busyWay({ now: () => time }), at: (ms: number) => (time = ms) }
  }

  /** The same with 16 batches in flight. */
  function fullWayAt() {
    const made = busyWayAt()
    for (let i = 0; i < ROOM; i++) {
      made.add(...ask(`batch ${i}`))
      made.endTurn()
    }
    return made
  }

  it('counts as lost, and calls are sent again', () => {
    const { add, sent, calls, endTurn, at } = fullWayAt()
    at(59_999)
    add(...ask('early'))
    endTurn()
    expect(sent).toHaveLength(ROOM)
    at(60_000)
    add(...ask('late'))
    endTurn()
    expect(calls().slice(ROOM)).toEqual([['early: consume x1', 'late: consume x1']])
  })

  it('answers its callers where its reply comes after all, and is not counted twice', () => {
    const { add, sent, group, endTurn, at } = busyWayAt()
    const [late] = add(...ask('late'))
    endTurn()
    at(60_000)
    expect(group.isIdle).toBe(true)
    add(...ask('next'))
    sent[0]!.reply('for late')
    expect(late!.outcome).toBe('for late')
    expect(group.isIdle).toBe(false)
    sent[1]!.reply()
    expect(group.isIdle).toBe(true)
  })

  it('does not keep later calls from being sent at once', () => {
    const { add, calls, endTurn, at } = busyWayAt()
    at(60_000)
    add(...ask('e'))
    endTurn()
    add(...ask('f'))
    expect(calls()).toEqual([['e: consume x1'], ['f: consume x1']])
  })

  it('does not keep its script from being dropped', () => {
    const { group, at } = fullWayAt()
    expect(group.isIdle).toBe(false)
    at(60_000)
    expect(group.isIdle).toBe(true)
  })
})

describe('calls of one key', () => {
  it('that belong to two limiters travel together, each for itself', () => {
    const { add, calls, endTurn } = busyWay()
    add(new Asked('a:e', 'consume', 1, 'a'), new Asked('b:e', 'consume', 1, 'b'), ...ask('f'))
    endTurn()
    expect(calls()).toEqual([['a:e: consume x1', 'b:e: consume x1', 'f: consume x1']])
  })

  it('that are equal are made in one run, and each resolves', () => {
    const { add, calls, sent, endTurn } = busyWay()
    const asked = add(...ask('e', 'f', 'e', 'e'))
    endTurn()
    expect(calls()).toEqual([['e: consume x3', 'f: consume x1']])
    sent[0]!.reply('for e', 'for f')
    expect(asked.map(({ outcome }) => outcome)).toEqual(['for e', 'for f', 'for e', 'for e'])
  })

  it('that differ are sent one after the other, with calls on other keys beside the first', () => {
    const { add, calls, endTurn } = busyWay()
    const questions = ['consume', 'consume', 'reset', 'consume', 'consume']
    add(...questions.map((question) => new Asked('e', question)), ...ask('f'))
    endTurn()
    expect(calls()).toEqual([['e: consume x2', 'f: consume x1'], ['e: reset x1'], ['e: consume x2']])
  })

  it('stay in order when a batch between them is full', () => {
    const { add, calls, endTurn } = busyWay()
    add(new Asked('e', 'consume', 900), new Asked('e', 'reset', 900), new Asked('e', 'consume', 200))
    endTurn()
    expect(calls()).toEqual([['e: consume x1'], ['e: reset x1'], ['e: consume x1']])
  })
})

describe('in a Cluster, calls with a tag', () => {
  const tagged = (tag: string, ...keys: string[]) =>
    keys.map((key) => new Asked(key, 'consume', 1, 'a keyspace', tag))

  it('travel with those of their tag, all in one write, and those without a tag one by one', () => {
    const { add, calls, writes, endTurn } = busyWay({ takesManyKeys: false })
    add(...tagged('a', 'e', 'f'), ...tagged('b', 'g'), ...ask('h', 'i'), ...tagged('a', 'j'))
    expect(calls()).toEqual([])
    endTurn()
    expect(calls().map((batch) => batch.map((call) => call[0]).join(''))).toEqual(['efj', 'g', 'h', 'i'])
    expect(writes).toEqual([4])
  })

  it('are at most 64 in a batch', () => {
    const { add, calls, endTurn } = busyWay({ takesManyKeys: false })
    add(...tagged('a', ...many(65).map(({ key }) => key)))
    endTurn()
    expect(calls().map(({ length }) => length)).toEqual([64, 1])
  })

  it('are not held back by batches of other tags without an answer', () => {
    const { add, calls, endTurn } = busyWay({ takesManyKeys: false })
    for (let i = 0; i < 20; i++) {
      add(...tagged('stalled', `e${i}`, `f${i}`))
      endTurn()
    }
    add(...tagged('b', 'g', 'h'))
    endTurn()
    expect(calls().at(-1)).toEqual(['g: consume x1', 'h: consume x1'])
  })

  it.each([
    ['TRYAGAIN', 'TRYAGAIN Multiple keys request during rehashing of slot', false],
    ['TRYAGAIN by a proxy', 'TRYAGAIN Multiple keys request during rehashing of slot', true],
    ['CROSSSLOT', "CROSSSLOT Keys in request don't hash to the same slot", false],
  ])('go one by one where their batch was refused with %s', (_, message, takesManyKeys) => {
    const { add, sent, calls, endTurn } = busyWay({ takesManyKeys })
    const asked = add(...tagged('a', 'e', 'f', 'f'))
    endTurn()
    sent[0]!.fail(storeError(new Error(message)))
    expect(calls().slice(1)).toEqual([['e: consume x1'], ['f: consume x2']])
    for (const { calls: one, reply } of sent.slice(1)) reply(`for ${one[0]![0]}`)
    expect(asked.map(({ outcome }) => outcome)).toEqual(['for e', 'for f', 'for f'])
  })

  it('are not sent again where their batch failed otherwise', () => {
    const { add, sent, endTurn } = busyWay({ takesManyKeys: false })
    const asked = add(...tagged('a', 'e', 'f'))
    endTurn()
    const gone = storeError(new Error('connection lost'))
    sent[0]!.fail(gone)
    endTurn()
    expect(asked.map(({ outcome }) => outcome)).toEqual([gone, gone])
    expect(sent).toHaveLength(1)
  })
})

describe('a caller who has given up', () => {
  it('is marked unsent until the call is sent', () => {
    const { add, endTurn } = busyWay()
    const [e, f] = add(...ask('e', 'f'))
    expect([e!.caller.unsent, f!.caller.unsent]).toEqual([true, true])
    endTurn()
    expect([e!.caller.unsent, f!.caller.unsent]).toEqual([false, false])
  })

  it('is removed from its batch without being sent', () => {
    const { add, calls, endTurn } = busyWay()
    const [e, f] = add(...ask('e', 'f'))
    e!.caller.gone = true
    endTurn()
    expect(calls()).toEqual([['f: consume x1']])
    expect(e!.outcome).toMatchObject({ code: 'STORE_TIMEOUT' })
    expect(f!.outcome).toBeUndefined()
  })

  it('leaves equal calls of other callers in the batch', () => {
    const { add, calls, sent, endTurn } = busyWay()
    const [first, second, third] = add(...ask('e', 'e', 'e'))
    first!.caller.gone = third!.caller.gone = true
    endTurn()
    expect(calls()).toEqual([['e: consume x1']])
    sent[0]!.reply('for e')
    expect(second!.outcome).toBe('for e')
    expect([first, third].map((call) => (call!.outcome as { code: string }).code)).toEqual([
      'STORE_TIMEOUT',
      'STORE_TIMEOUT',
    ])
  })

  it('leaves nothing to send if all callers have given up', () => {
    const { add, calls, endTurn } = busyWay()
    for (const call of add(...ask('e', 'f'))) call.caller.gone = true
    endTurn()
    expect(calls()).toEqual([])
  })
})

describe('if a call may only have keys of one slot', () => {
  it('each key is sent on its own, with all equal calls on it', () => {
    const { add, calls, endTurn } = busyWay({ takesManyKeys: false })
    add(...ask('e', 'f', 'e'))
    endTurn()
    expect(calls()).toEqual([['e: consume x2'], ['f: consume x1']])
  })

  it('all calls of a turn are sent at its end, in one write', () => {
    const { add, sent, writes, endTurn } = busyWay({ takesManyKeys: false })
    add(...many(300))
    expect(sent).toHaveLength(0)
    endTurn()
    expect(writes).toEqual([300])
  })

  it('no call waits for a node that does not answer', () => {
    const { add, sent, endTurn } = busyWay({ takesManyKeys: false })
    add(...many(500))
    endTurn()
    expect(sent).toHaveLength(500)
  })

  it('calls that a server refused for that reason are sent again key by key', () => {
    const { add, calls, sent, endTurn, refuseManyKeys } = busyWay()
    const [e, f] = add(...ask('e', 'f'))
    endTurn()
    refuseManyKeys()
    sent[0]!.fail(crossSlot)
    expect(calls().slice(1)).toEqual([['e: consume x1'], ['f: consume x1']])
    sent[1]!.reply('for e')
    sent[2]!.fail(new Error('no'))
    expect([e!.outcome, f!.outcome]).toEqual(['for e', new Error('no')])
  })

  it('a batch that fails for another reason is not sent again: it may have been carried out', () => {
    const { add, calls, sent, endTurn, refuseManyKeys } = busyWay()
    const asked = add(...ask('e', 'f'))
    endTurn()
    refuseManyKeys()
    const broken = new Error('the connection broke')
    sent[0]!.fail(broken)
    expect(calls()).toHaveLength(1)
    expect(asked.map(({ outcome }) => outcome)).toEqual([broken, broken])
  })
})

describe('closing', () => {
  it('rejects waiting and later calls, and lets those in flight finish', () => {
    const { add, group, sent } = way()
    const first = add(...few())
    const waiting = add(...ask('e', 'e', 'f'))
    group.close()
    expect(() => add(...ask('g'))).toThrow('the store is closed')
    for (const { outcome } of waiting) expect(outcome).toMatchObject({ code: 'CLOSED' })
    sent[0]!.reply('for the first')
    expect(first[0]!.outcome).toBe('for the first')
    expect(sent).toHaveLength(first.length)
  })
})
