import { calendarWindow } from '@sluice/calendar'
import {
  consumeAll,
  createLimiter,
  type Decision,
  gcra,
  memoryStore,
  type Policy,
  slidingLog,
  type Store,
  tokenBucket,
} from '@sluice/core'
import type { Answer, Caller, Correction, Keyspace, Notice } from '@sluice/core/store'
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { FrameReader, FrameWriter } from '../src/frames.js'
import type { MachineKeyspace } from '../src/machine-keyspace.js'
import { PROTOCOL, REPLY, REQUEST } from '../src/protocol.js'
import { machineStore } from '../src/index.js'
import { MOST_LISTS } from '../src/session.js'
import { collect } from '@sluice/harness/figures'
import { until } from '@sluice/harness/redis'
import { Meeting } from './meeting.js'
import { expectWarnings } from '@sluice/harness/warnings'

let meeting: Meeting
beforeEach(() => {
  meeting = new Meeting()
})
afterEach(() => meeting.end())

const sluggish = { deadline: '5s', onStoreError: 'throw' } as const
const policies = [gcra({ limit: 10, window: '1d' })]
const ignore = (): void => {}

/** The charge of an allowed call, as a limiter gives it back. */
const chargeOf = ({ at, now: decidedAt, epoch }: Answer, cost: number) => ({ at, cost, decidedAt, epoch })

function busy(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('a machine store', () => {
  it('shares one state among all stores of its name', async () => {
    const stores = [meeting.open(), meeting.open(), meeting.open({ serve: false })]
    const limiters = stores.map((store) => createLimiter({ name: 'api', policies, store, ...sluggish }))
    await Promise.all(stores.slice(0, 2).map((store) => store.ready()))
    await until(
      'the third to be reached',
      async () => (await limiters[2]!.peek('k').catch(ignore)) !== undefined,
    )
    const decisions = await Promise.all(Array.from({ length: 30 }, (_, i) => limiters[i % 3]!.consume('k')))
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(10)
  })

  it('keeps names apart, also long ones', async () => {
    const names = ['one', 'two', 'a name of fifty-one characters, not a plain one / ..']
    for (const name of names) {
      const [, client] = await meeting.pair({ name })
      const limiter = createLimiter({ name: 'api', policies, store: client, ...sluggish })
      expect((await limiter.consume('k')).remaining).toBe(9)
    }
    expect(readdirSync(meeting.folder)).toHaveLength(3)
  })

  it('rejects calls that wait for their turn when it is closed, in both kinds of processes', async () => {
    const [server, client] = await meeting.pair()
    for (const store of [client, server]) {
      const name = store === client ? 'client' : 'server'
      const limiter = createLimiter({ name, policies, store, ...sluggish })
      await limiter.consume('k', { cost: 10 })
      const refusal = limiter.acquire('k', { maxWait: '1d' }).catch((error: unknown) => error)
      await until('its place to be booked', async () => (await limiter.peek('k')).retryAfterMs > 8_640_000)
      await store.close()
      expect(await refusal).toMatchObject({ code: 'CLOSED' })
    }
  })

  it('keeps the calendars that calls bring, and warns that the end of its processes ends them', async () => {
    expectWarnings(['STORE_FORGETS'])
    const [server, client] = await meeting.pair()
    const zones = ['UTC', 'Asia/Tokyo', 'America/Lima'].map((timeZone) =>
      calendarWindow({ limit: 4, every: 'week', timeZone }),
    )
    for (const store of [client, server]) {
      const limiter = createLimiter({ name: 'weeks', policies: [zones[0]!], store, ...sluggish })
      const calls = await Promise.all(zones.map((policy) => limiter.consume('k', { policies: [policy] })))
      expect(calls.filter(({ allowed }) => allowed)).toHaveLength(store === client ? 3 : 1)
      expect(new Set(calls.map(({ resetAfterMs }) => Math.round(resetAfterMs / 10_000))).size).toBe(1)
    }
  })

  it('refuses calls under a list that the server cannot make, and they cost its process nothing else', async () => {
    const [server, client] = await meeting.pair({ clock: () => 1_000_000_000 })
    const api = client.keyspace('api', policies, ignore)
    const month = client.keyspace('month', [calendarWindow({ limit: 4, every: 'month' })], ignore)
    const { list } = month as MachineKeyspace
    // A time zone that the process that serves does not have.
    Object.assign(list, { text: list.text.replace('UTC', 'Mars/Olympus_Mons') })
    expect(await client.permits!('jobs', 30_000).ask('take', 'k', [1], 1)).toEqual(['held'])
    const charge = chargeOf(await api.decide('consume', 'k', 5, 0), 5)
    const keyspaces = [month, api, month, api]
    const calls = await Promise.allSettled(keyspaces.map(async (each) => each.decide('consume', 'k', 1, 0)))
    const refused = { status: 'rejected', reason: { code: 'STORE_ERROR', sent: false } }
    expect(calls).toMatchObject([refused, { value: { remaining: 4 } }, refused, { value: { remaining: 3 } }])
    expect(await server.permits!('jobs', 30_000).ask('take', 'k', [1], 1)).toEqual(['unknown'])
    expect(await api.correct({ kind: 'release', key: 'k', charge, units: 5 })).toBe(5)
    const readable = client.keyspace('month', month.policies, ignore)
    expect(await readable.decide('consume', 'k', 1, 0)).toMatchObject({ remaining: 3 })
  })

  it('is reached by a process that is busy while it connects', async () => {
    const [server] = await meeting.pair()
    const client = meeting.open({ serve: false })
    busy(400)
    await client.ready()
    await server.close()
  })

  it('answers at once in the process that serves', async () => {
    const [server] = await meeting.pair()
    expect(server.keyspace('api', policies, ignore).decide('consume', 'k', 1, 0)).toMatchObject({
      remaining: 9,
    })
    const limiter = createLimiter({ name: 'api', policies, store: server, ...sluggish })
    expect(limiter.decide('k')).toMatchObject({ allowed: true, remaining: 8 })
    expect(limiter.decide('k', { cost: 9 })).toMatchObject({ allowed: false, reason: 'limit' })
  })

  it('recovers with calls that it answers at once, after it took over', async () => {
    const [server] = await meeting.pair()
    const next = meeting.open({ serve: true })
    const limiter = createLimiter({ name: 'api', policies, store: next, deadline: '5s' })
    const recovered = jest.fn()
    limiter.on('recovered', recovered)
    expect(await limiter.consume('k')).toMatchObject({ degraded: 'unavailable' })
    await server.close()
    const keyspace = next.keyspace('api', policies, ignore)
    await until('it to serve', async () => keyspace.answersAtOnce === true)
    expect(limiter.decide('k')).toMatchObject({ remaining: 9, degraded: undefined })
    await until('it to recover', async () => {
      await limiter.consume('k', { cost: 0 })
      return recovered.mock.calls.length === 1
    })
  })

  it('keeps keys apart that differ in lone surrogates alone', async () => {
    const [, client] = await meeting.pair()
    const keyspace = client.keyspace('api', policies, ignore)
    for (const key of ['\ud800', '\udc00', '\ufffd', 'ÿ', 'y', '', '\0']) {
      expect(await keyspace.decide('consume', key, 1, 0)).toMatchObject({ remaining: 9 })
    }
  })

  it('decides by the limits of each call, however many lists a process uses', async () => {
    const [server, client] = await meeting.pair()
    const of = (limit: number) => client.keyspace('api', [gcra({ limit, window: '1d' })], ignore)
    for (let limit = 2; limit < 2200; limit++) {
      expect(await of(limit).decide('consume', `k${limit}`, 1, 0)).toMatchObject({ remaining: limit - 1 })
    }
    expect(await of(2).decide('consume', 'k2', 1, 0)).toMatchObject({ remaining: 0 })
    expect(server.keyspace('api', policies, ignore).decide('peek', 'k2', 1, 0)).toMatchObject({
      now: expect.any(Number),
    })
  })

  it('decides each key of a call by its own list, where one of them takes the number of another', async () => {
    const [, client] = await meeting.pair()
    const of = (limit: number) => client.keyspace('api', [gcra({ limit, window: '1d' })], ignore)
    const first = of(1)
    await first.decide('consume', 'k', 0, 0)
    // As many lists as a connection has numbers: a further one takes the number of one that was not used for long.
    for (let limit = 2; limit <= MOST_LISTS; limit++) await of(limit).decide('consume', 'k', 0, 0)
    const parts = [first, of(5000)].map((keyspace, i) => ({ keyspace, key: `k${i}`, cost: 1, enforce: true }))
    const answers = await new Promise((answered, failed) => {
      void Promise.resolve(first.together!.decide(parts, { answered, failed })).then(answered, failed)
    })
    expect(answers).toMatchObject([{ remaining: 0 }, { remaining: 4999 }])
  })

  it('counts the refusals of all processes for a penalty, and blocks the key in each', async () => {
    const stores = await meeting.pair()
    const penalty = { after: 3, block: '10m' } as const
    const [server, client] = stores.map((store) =>
      createLimiter({
        name: 'login',
        policies: [gcra({ limit: 1, window: '1d' })],
        store,
        penalty,
        ...sluggish,
      }),
    )
    const reasons: unknown[] = []
    for (const limiter of [server!, client!, server!, client!, server!, client!])
      reasons.push((await limiter.consume('k')).reason)
    expect(reasons).toEqual([undefined, 'limit', 'limit', 'limit', 'blocked', 'blocked'])
  })

  it('counts refusals for the limiter with a penalty alone, and blocks for all of its name', async () => {
    const [, client] = await meeting.pair()
    const penalty = { after: 1, block: 60_000_000, factor: 1, maxBlock: 60_000_000, forgetAfter: 60_000_000 }
    const plain = client.keyspace('api', policies, ignore)
    const strict = client.keyspace('api', policies, ignore, penalty)
    await plain.decide('consume', 'k', 10, 0)
    for (const keyspace of [plain, plain, strict]) {
      expect(await keyspace.decide('consume', 'k', 1, 0)).toMatchObject({ reason: 'limit' })
    }
    expect(await plain.decide('consume', 'k', 1, 0)).toMatchObject({ reason: 'blocked' })
  })

  it('gives units back that a lease has served', async () => {
    const [, client] = await meeting.pair()
    const list = [slidingLog({ limit: 1000, window: '1d' })]
    const leases = { ttl: '10s' } as const
    const limiter = createLimiter({ name: 'api', policies: list, store: client, leases, ...sluggish })
    let leased: Decision | undefined
    limiter.on('decision', ({ decidedBy, decision }) => {
      if (decidedBy === 'lease') leased = decision
    })
    await until('a lease', async () => (await limiter.consume('k')) && leased !== undefined)
    expect(await leased!.settle(0)).toBe(-1)
  })

  it('tells the process whose call evicted a key, and no other', async () => {
    const [server, client] = await meeting.pair({ maxKeys: 1 })
    const [own, others]: [Notice[], Notice[]] = [[], []]
    server.keyspace('api', policies, (notice) => others.push(notice))
    const keyspace = client.keyspace('api', policies, (notice) => own.push(notice))
    for (const key of ['a', 'b']) await keyspace.decide('consume', key, 1, 0)
    await until('the notice', () => own.some((notice) => notice.event === 'evicted' && notice.key === 'a'))
    expect(others).toEqual([])
  })

  it('decides on a wait that is no whole number of microseconds, or has no end', async () => {
    const [, client] = await meeting.pair({ clock: () => 1_000_000_000 })
    const keyspace = client.keyspace('api', [gcra({ limit: 1, window: '1s' })], ignore)
    await keyspace.decide('consume', 'k', 1, 0)
    const at = async (maxWait: number) => (await keyspace.decide('book', 'k', 1, maxWait)).reason
    expect(await at(999_999.5)).toBe('limit')
    expect(await at(1_000_000.5)).toBeUndefined()
    expect(await at(Infinity)).toBeUndefined()
  })

  it('holds no limiter that is held nowhere else, and tells the others of its name', async () => {
    const store = meeting.open({ maxKeys: 1 })
    await store.ready()
    const notices: Notice[] = []
    const keyspace = store.keyspace('api', policies, (notice) => notices.push(notice))
    const open = () => new WeakRef(createLimiter({ name: 'api', policies, store }))
    const dropped = [open(), open()]
    await until('the limiters to be collected', () => {
      collect()
      return dropped.every((limiter) => limiter.deref() === undefined)
    })
    for (const key of ['a', 'b']) await keyspace.decide('consume', key, 1, 0)
    expect(notices).toContainEqual(expect.objectContaining({ event: 'evicted', key: 'a' }))
  })

  it('leaves out calls whose caller gave up before they were sent', async () => {
    const [server, client] = await meeting.pair()
    const keyspace = client.keyspace('api', policies, ignore)
    const callers = Array.from({ length: 8 }, () => ({
      gone: false,
      unsent: false,
      queued(isQueued: boolean) {
        this.unsent = isQueued
      },
    }))
    const calls = callers.map(async (caller) => keyspace.decide('consume', 'k', 1, 0, caller))
    expect(callers.map(({ unsent }) => unsent)).toEqual([...Array(4).fill(false), ...Array(4).fill(true)])
    for (const caller of callers.slice(4)) caller.gone = true
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.map(({ status }) => status)).toEqual([
      ...Array(4).fill('fulfilled'),
      ...Array(4).fill('rejected'),
    ])
    expect(outcomes[7]).toMatchObject({ reason: { code: 'STORE_UNAVAILABLE', sent: false } })
    expect(server.keyspace('api', policies, ignore).decide('peek', 'k', 0, 0)).toMatchObject({ remaining: 6 })
  })

  it('leaves out changes whose caller gave up before they were sent', async () => {
    const [server, client] = await meeting.pair()
    const open = (store: Store): Keyspace => store.keyspace('api', policies, ignore, undefined, { max: 9 })
    const keyspace = open(client)
    const reservations = keyspace.reservations!
    const correct = async (change: Correction, caller?: Caller) => keyspace.correct(change, caller)
    const made = { key: 'k', cost: 1, ttl: 60_000_000, atEnd: 0 }
    const { now } = await reservations.reserve({ ...made, id: 1 })
    const change = { key: 'k', id: 1, decidedAt: now, end: now + made.ttl, kind: 'settle', units: 3 } as const
    const company = Array.from({ length: 4 }, () => correct({ kind: 'charge', key: 'k', cost: 1 }))
    const gone = { gone: true }
    const calls = [
      reservations.reserve({ ...made, id: 2 }, gone),
      reservations.change(change, gone),
      correct({ kind: 'charge', key: 'k', cost: 1 }, gone),
    ]
    for (const call of calls)
      await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', sent: false })
    await Promise.all(company)
    expect(open(server).decide('peek', 'k', 0, 0)).toMatchObject({ remaining: 5, held: [1] })
  })
})

describe('when the process that serves ends', () => {
  it('another one takes over, and the state begins anew once', async () => {
    const first = meeting.open()
    await first.ready()
    const second = meeting.open()
    await second.ready()
    const limiter = createLimiter({ name: 'api', policies, store: second, ...sluggish })
    await limiter.consume('k', { cost: 10 })
    await first.close()
    await until(
      'another to serve',
      async () => (await limiter.consume('k', { cost: 10 }).catch(ignore))?.allowed,
    )
    expect((await limiter.consume('k')).allowed).toBe(false)
  })

  it('its bookings are lost, and its charges give nothing back to others', async () => {
    const first = meeting.open()
    await first.ready()
    const second = meeting.open()
    await second.ready()
    const list = [gcra({ limit: 1, window: '1s' })]
    const keyspace = second.keyspace('api', list, ignore)
    const charged = await keyspace.decide('consume', 'k', 1, 0)
    const { booking } = await keyspace.decide('book', 'k', 1, 10_000_000)
    expect(await keyspace.confirm(booking!)).toBe('stands')
    await first.close()
    await until('another to serve', async () => {
      try {
        return (await keyspace.decide('consume', 'k', 1, 0)).reason === undefined
      } catch {
        return false
      }
    })
    expect(await keyspace.confirm(booking!)).toBe('lost')
    expect(await keyspace.cancel(booking!)).toBe(false)
    const charge = chargeOf(charged, 1)
    expect(await keyspace.correct({ kind: 'release', key: 'k', charge, units: 1 })).toBe(0)
    expect(await keyspace.decide('peek', 'k', 1, 0)).toMatchObject({ reason: 'limit' })
  })

  it('its charges of calls on several keys give nothing back to others, though its clock was ahead', async () => {
    const first = meeting.open({ clock: () => (Date.now() + 60_000) * 1000 })
    await first.ready()
    const second = meeting.open()
    await second.ready()
    const list = [gcra({ limit: 1, window: '1h' })]
    const limiters = ['a', 'b'].map((name) =>
      createLimiter({ name, policies: list, store: second, ...sluggish }),
    )
    const whole = await consumeAll(limiters.map((limiter) => ({ limiter, key: 'k' })))
    expect(whole.allowed).toBe(true)
    await first.close()
    await until('another to serve', async () => (await limiters[0]!.consume('k').catch(ignore))?.allowed)
    await whole.settle(0)
    expect((await limiters[0]!.consume('k')).allowed).toBe(false)
  })

  it('charges of the next one are given back, though the clock of the former was ahead', async () => {
    const first = meeting.open({ clock: () => 7_200_000_000 })
    await first.ready()
    const stores = [meeting.open({ clock: () => 3_600_000_000 }), meeting.open({ serve: false })]
    await Promise.all(stores.map((store) => store.ready()))
    const limiters = stores.map((store) => createLimiter({ name: 'api', policies, store, ...sluggish }))
    const former = await Promise.all(limiters.map((limiter) => limiter.consume('k')))
    await first.close()
    for (const [i, limiter] of limiters.entries()) {
      await until('another to serve', async () => (await limiter.consume('k').catch(ignore))?.allowed)
      expect(await (await limiter.consume('k', { cost: 5 })).settle(0)).toBe(-5)
      expect(await former[i]!.settle(0)).toBe(0)
    }
    const wholes = limiters.map((limiter) =>
      consumeAll([
        { limiter, key: 'a' },
        { limiter, key: 'b', cost: 5 },
      ]),
    )
    for (const whole of await Promise.all(wholes)) await whole.settle(0)
    for (const key of ['a', 'b']) expect(await limiters[0]!.peek(key)).toMatchObject({ remaining: 10 })
  })

  it('calls without an answer fail as sent, and are not sent again', async () => {
    const [server, client] = await meeting.pair()
    const keyspace = client.keyspace('api', policies, ignore)
    const calls = Array.from({ length: 8 }, async () => keyspace.decide('consume', 'k', 1, 0))
    await server.close()
    const outcomes = await Promise.allSettled(calls)
    const failed = { status: 'rejected', reason: { code: 'STORE_UNAVAILABLE', sent: true } }
    expect(outcomes).toMatchObject(Array(8).fill(failed))
  })

  it('a process that does not serve decides as onStoreError says, and uses the next one', async () => {
    const alone = meeting.open({ serve: false })
    await expect(alone.ready()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', sent: false })
    const limiter = createLimiter({ name: 'api', policies, store: alone })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 9, degraded: 'unavailable' })
    meeting.open({ serve: true })
    await until('the server to decide', async () => (await limiter.consume('k')).degraded === undefined)
  })

  it('one that only serves does not join another', async () => {
    const [server] = await meeting.pair()
    const other = meeting.open({ serve: true })
    await expect(other.ready()).rejects.toThrow('another process serves already')
    await server.close()
    await until('the other to serve', () =>
      other.ready().then(
        () => true,
        () => false,
      ),
    )
  })

  it('a process is ready again once the next one serves, and not before', async () => {
    const [server, client] = await meeting.pair()
    const keyspace = client.keyspace('api', policies, ignore)
    const call = Promise.resolve(keyspace.decide('consume', 'k', 1, 0))
    await server.close()
    await expect(call).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' }) // it has noticed the end
    await expect(client.ready()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', sent: false })
    await meeting.open({ serve: true }).ready()
    await until('the client to be ready', () =>
      client.ready().then(
        () => true,
        () => false,
      ),
    )
    expect(await keyspace.decide('consume', 'k', 1, 0)).toMatchObject({ remaining: 9 })
  })

  it('the serving ends where somebody has deleted its socket', async () => {
    expectWarnings(['CLOCK_FAKED'])
    jest.useFakeTimers({
      doNotFake: ['setImmediate', 'setTimeout', 'nextTick', 'queueMicrotask', 'performance'],
    })
    try {
      const store = meeting.open()
      await store.ready()
      const keyspace = store.keyspace('api', policies, ignore)
      await keyspace.decide('consume', 'k', 1, 0)
      jest.advanceTimersByTime(5000)
      expect(await keyspace.decide('peek', 'k', 0, 0)).toMatchObject({ remaining: 9 })
      rmSync(join(meeting.folder, `${PROTOCOL}-test`, '1'))
      jest.advanceTimersByTime(5000)
      expect(await keyspace.decide('peek', 'k', 0, 0)).toMatchObject({ remaining: 10 })
      const other = meeting.open({ serve: false })
      await other.ready()
    } finally {
      jest.useRealTimers()
    }
  })
})

describe('the socket', () => {
  const folder = () => join(meeting.folder, `${PROTOCOL}-test`)

  it('can be opened by this user alone', async () => {
    await meeting.pair()
    expect(statSync(join(folder(), '1')).mode & 0o777).toBe(0o600)
    expect(statSync(folder()).mode & 0o777).toBe(0o700)
  })

  it('is replaced when its process has left it behind, and no other file stays', async () => {
    mkdirSync(folder(), { mode: 0o700 })
    writeFileSync(join(folder(), '41'), '') // refuses connections as a socket without a process does
    await meeting.pair()
    expect(readdirSync(folder())).toEqual(['42'])
  })

  it('is not taken from a process that is stopped: it accepts connections and says nothing', async () => {
    const [server] = await meeting.pair()
    await server.close()
    const silent = createServer((socket) => socket.resume()).listen(join(folder(), '2'))
    await once(silent, 'listening')
    const store = meeting.open()
    await expect(store.ready()).rejects.toThrow('the process that serves is silent')
    expect(readdirSync(folder()).sort()).toEqual(['1', '2'])
    await new Promise((resolve) => silent.close(resolve))
  })

  it('must lie in a folder of this user with mode 0700', () => {
    chmodSync(meeting.folder, 0o755)
    expect(() => meeting.open()).toThrow(/must be a directory of this user with mode 0700, got ".*"/)
    chmodSync(meeting.folder, 0o700)
    symlinkSync('/tmp', folder())
    expect(() => meeting.open()).toThrow('must be a directory of this user with mode 0700')
  })

  it.each([
    ['a file', (path: string) => writeFileSync(path, ''), ''],
    ['within a file', (path: string) => writeFileSync(path, ''), '/within'],
    ['a path with a NUL', () => {}, '\0'],
    ['a symlink to nothing', (path: string) => symlinkSync('/nowhere/at/all', path), ''],
  ])('cannot lie in %s', (_, make, within) => {
    const path = join(meeting.folder, 'x')
    make(path)
    const error = expect.objectContaining({ name: 'PolicyError', code: 'INVALID_OPTION' })
    expect(() => meeting.open({ folder: path + within })).toThrow(error as never)
  })

  it('ends a connection that makes no sense, and serves the others', async () => {
    const [, client] = await meeting.pair()
    const keyspace = client.keyspace('api', policies, ignore)
    const hello = (writer: FrameWriter) => writer.add(REQUEST.hello, 0, [PROTOCOL, 0], 'test')
    const list = JSON.stringify(['api', [['gcra/86400000', 10, 10]]])
    const open = (writer: FrameWriter) => {
      hello(writer)
      writer.add(REQUEST.open, 0, [], list)
    }
    const nonsense: ((writer: FrameWriter) => void)[] = [
      (writer) => writer.add(REQUEST.hello, 0, [PROTOCOL + 1, 0], 'test'),
      (writer) => writer.add(REQUEST.hello, 0, [PROTOCOL, 0], 'another'),
      (writer) => writer.add(REQUEST.consume, 0, [1, 0], 'k'),
      (writer) => (hello(writer), writer.add(REQUEST.consume, 0, [1, 0], 'k')),
      (writer) => (hello(writer), writer.add(REQUEST.open, 5, [], list)),
      (writer) => (open(writer), writer.add(REQUEST.consume, 0, [-1, 0], 'k')),
      (writer) => (open(writer), writer.add(REQUEST.consume, 0, [1.5, 0], 'k')),
      (writer) => (open(writer), writer.add(REQUEST.consume, 0, [NaN, 0], 'k')),
      (writer) => (open(writer), writer.add(REQUEST.consume, 0, [], 'k')),
      (writer) => (open(writer), writer.add(REQUEST.release, 0, [1, 1, 1], 'k')),
      (writer) => (open(writer), writer.add(REQUEST.permits, 0, [1], 'jobs\nk')),
      (writer) => (open(writer), writer.add(REQUEST.permits, 5, [1, 1, 1_000_000, 1], 'jobs\nk')),
      (writer) => (open(writer), writer.add(200, 0, [], '')),
    ]
    for (const write of nonsense) {
      const writer = new FrameWriter()
      write(writer)
      await ended(writer.take())
    }
    await ended(Buffer.from([1, 0, 0, 0, 1, 0, 0, 0, 0, 0]))
    await ended(Buffer.from([255, 255, 255, 255, 1, 0, 0, 0, 0, 0]))
    await ended(Buffer.from([18, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
    expect(await keyspace.decide('consume', 'k', 1, 0)).toMatchObject({ remaining: 9 })
  })

  it('refuses each call under a list that makes no sense, and answers the others', async () => {
    await meeting.pair()
    const lists = [
      {},
      ['api', [['gcra/1000', -1, 10]]],
      ['api', [['nothing/1000', 1, 1]]],
      ['api', [['gcra/1000', 1, 1]], [1, -1, 1, 1000, 1000]],
      ['api', [['gcra/1000', 1, 1]], [1, 1, 0.5, 1, 1]],
      ['api', [['gcra/86400000', 10, 10]]],
    ]
    const writer = new FrameWriter()
    writer.add(REQUEST.hello, 0, [PROTOCOL, 0], 'test')
    for (const [i, list] of lists.entries()) {
      writer.add(REQUEST.open, i, [], JSON.stringify(list))
      for (const cost of [3, 0]) writer.add(REQUEST.consume, i, [cost, 0], 'k')
    }
    writer.add(200, 0, [], '') // ends the connection
    const replies: [kind: number, remaining: number | undefined][] = []
    const answered = await ended(writer.take())
    new FrameReader().push(answered, ({ kind, numbers }) => replies.push([kind, numbers[2]]))
    const refused = Array(10).fill([REPLY.refused, undefined])
    expect(replies.slice(1)).toEqual([...refused, [REPLY.answer, 7], [REPLY.answer, 7]])
  })

  it('answers the calls that arrived before one that makes no sense, and none after it', async () => {
    const [server] = await meeting.pair()
    const writer = new FrameWriter()
    writer.add(REQUEST.hello, 0, [PROTOCOL, 0], 'test')
    writer.add(REQUEST.open, 0, [], JSON.stringify(['api', [['gcra/86400000', 10, 10]]]))
    for (const cost of [3, 0.5, 1]) writer.add(REQUEST.consume, 0, [cost, 0], 'k')
    const replies: [kind: number, remaining: number][] = []
    const answered = await ended(writer.take())
    new FrameReader().push(answered, ({ kind, numbers }) => replies.push([kind, numbers[2]!]))
    expect(replies.slice(1)).toEqual([[REPLY.answer, 7]])
    expect(server.keyspace('api', policies, ignore).decide('peek', 'k', 0, 0)).toMatchObject({ remaining: 7 })
  })

  /** Resolves to what the other side has sent when it has closed the connection. */
  function ended(bytes: Buffer): Promise<Buffer> {
    return new Promise((resolve) => {
      const chunks: Buffer[] = []
      const socket = connect(join(folder(), '1'), () => socket.write(bytes))
      socket.on('error', () => {})
      socket.on('data', (chunk) => chunks.push(chunk))
      socket.on('close', () => resolve(Buffer.concat(chunks)))
    })
  }
})

describe('bad options', () => {
  it.each([
    [{}, 'NAME_REQUIRED', 'machineStore needs a name'],
    [undefined, 'NAME_REQUIRED', "so write machineStore({ name: 'api' })"],
    [null, 'INVALID_OPTION', 'machineStore takes an object of options, got null'],
    [{ name: 'ü' }, 'INVALID_NAME', 'name must be 1 to 64 characters of printable ASCII'],
    [{ name: 'a', serve: 'yes' }, 'INVALID_OPTION', `serve must be 'auto', true or false, got "yes"`],
    [{ name: 'a', folder: 'relative' }, 'INVALID_OPTION', 'folder must be an absolute path, got "relative"'],
    [{ name: 'a', folder: `/tmp/${'x'.repeat(90)}` }, 'INVALID_OPTION', 'must be at most 103 bytes'],
    [{ name: 'a', maxKeys: 0 }, 'INVALID_OPTION', 'maxKeys must be a whole number from 1 to 8388608, got 0'],
    [
      { name: 'a', maxShapes: 0 },
      'INVALID_OPTION',
      'maxShapes must be a whole number from 1 to 1000000, got 0',
    ],
    [{ name: 'a', clock: 1 }, 'INVALID_OPTION', 'clock must be a function that returns microseconds, got 1'],
    [{ name: 'a', denialCache: true }, 'INVALID_OPTION', 'denialCache must be { maxAge, maxKeys } or false'],
    [{ name: 'a', path: '/tmp' }, 'INVALID_OPTION', `there is no option 'path' of machineStore`],
  ])('%j are refused', (options, code, message) => {
    expect(() => machineStore(options as never)).toThrow(expect.objectContaining({ code }) as never)
    expect(() => machineStore(options as never)).toThrow(message)
  })

  it('a policy of an unknown algorithm is refused', () => {
    const [policy] = policies
    const algorithm = { ...policy!.algorithm, name: 'of-my-own' }
    const foreign = Object.create(policy!, {
      algorithm: { value: algorithm },
      shape: { value: 'of-my-own/1000' },
    }) as Policy
    const store = meeting.open()
    expect(() => store.keyspace('api', [foreign], ignore)).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICIES' }) as never,
    )
  })

  it('lists of leased and of plain policies are sent as they are', async () => {
    const [, client] = await meeting.pair()
    const lists = [
      [slidingLog({ limit: 10, window: '1h' }).with({ capacity: 4 })],
      [
        tokenBucket({ limit: 10, window: '1h', capacity: 20, refill: 'interval' }),
        gcra({ limit: 3, window: '2h', slots: 8 }),
      ],
    ]
    for (const list of lists) {
      const own = await memoryStore().keyspace('api', list, ignore).decide('consume', 'k', 2, 0)
      const { reason, binding, remaining } = own
      const answer = await client.keyspace('api', list, ignore).decide('consume', 'k', 2, 0)
      expect(answer).toMatchObject({ reason, binding, remaining })
    }
  })
})
