import { createSemaphore, type Semaphore, type SemaphoreOptions } from '@sluice/core'
import { GRACE_US } from '@sluice/core/internal'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Host } from '../src/host.js'
import type { MachineStore } from '../src/index.js'
import { PROTOCOL } from '../src/protocol.js'
import { FakeClock } from '@sluice/testing'
import { bytesInUse } from '@sluice/harness/figures'
import { until } from '@sluice/harness/redis'
import { Meeting } from './meeting.js'
import { expectWarnings } from '@sluice/harness/warnings'

let meeting: Meeting
const semaphores: Semaphore[] = []
beforeEach(() => {
  meeting = new Meeting()
})
afterEach(async () => {
  await Promise.all(semaphores.splice(0).map((semaphore) => semaphore.close()))
  await meeting.end()
})

function open(store: MachineStore, options: Partial<SemaphoreOptions> = {}): Semaphore {
  const semaphore = createSemaphore({
    name: 'jobs',
    limit: 1,
    lease: '2s',
    deadline: '5s',
    store,
    ...options,
  })
  semaphores.push(semaphore)
  return semaphore
}
const taken = async (semaphore: Semaphore) => (await semaphore.acquire('', { maxWait: 0 })).allowed

describe('permits of a machine store', () => {
  it('are shared by the process that serves and by those that do not', async () => {
    const [one, other] = (await meeting.pair()).map((store) => open(store, { limit: 2 })) as [
      Semaphore,
      Semaphore,
    ]
    const held = [await one.acquire(), await other.acquire()]
    expect([await taken(one), await taken(other)]).toEqual([false, false])
    expect((await one.acquire('another', { maxWait: 0 })).allowed).toBe(true)
    await held[1]!.release()
    expect(await taken(one)).toBe(true)
  })

  it('go to waiting calls in the order in which they came', async () => {
    const all = (await meeting.pair()).map((store) => open(store)) as [Semaphore, Semaphore]
    const first = await all[0].acquire()
    const served: number[] = []
    const calls = Array.from({ length: 20 }, async (_, i) => {
      const permit = await all[1].acquire()
      served.push(i)
      await permit.release()
    })
    await first.release()
    await Promise.all(calls)
    expect(served).toEqual(Array.from({ length: 20 }, (_, i) => i))
  })

  it('pass from one process to another as soon as they are released', async () => {
    const [one, other] = (await meeting.pair()).map((store) => open(store)) as [Semaphore, Semaphore]
    for (let i = 0; i < 20; i++) {
      const held = await one.acquire()
      const waiting = other.acquire()
      await held.release()
      const next = await waiting
      const back = one.acquire()
      await next.release()
      await (await back).release()
    }
  })

  it('never exceed the limit, however many calls compete', async () => {
    const all = (await meeting.pair()).map((store) => open(store, { limit: 3 }))
    let [running, most] = [0, 0]
    await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        await using permit = await all[i % 2]!.acquire()
        expect(permit.allowed).toBe(true)
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
      }),
    )
    expect(most).toBe(3)
  })

  it('of a process that ends are free at once', async () => {
    const [server, client] = await meeting.pair()
    const [one, other] = [open(server), open(client)]
    await other.acquire()
    expect(await taken(one)).toBe(false)
    await client.close()
    await until('the permit to be free', () => taken(one))
  })

  it('are given back to their holders first when another process serves', async () => {
    const clock = new FakeClock()
    const server = meeting.open({ serve: true, clock: clock.now })
    await server.ready()
    const client = meeting.open({ clock: clock.now })
    await client.ready()
    const [held, newcomer] = [client.permits!('jobs', 30_000), client.permits!('jobs', 30_000)]
    expect(await held.ask('take', 'k', [1], 1)).toEqual(['held'])
    await server.close()
    await until('the other to serve', async () => (await newcomer.ask('wait', 'k', [1], 1))[0] === 'waiting')
    expect(await held.ask('renew', 'k', [1], 1)).toEqual(['held'])
    clock.pass(GRACE_US / 1000)
    expect(await newcomer.ask('poll', 'k', [1], 1)).toEqual(['waiting'])
    await held.ask('release', 'k', [1], 1)
    expect(await newcomer.ask('poll', 'k', [1], 1)).toEqual(['held'])
  })

  it('are granted to holders alone at first, also by a server that has never reached the one before', async () => {
    await (await meeting.pair())[0].close()
    const clock = new FakeClock()
    const next = meeting.open({ serve: true, clock: clock.now })
    await next.ready()
    const permits = next.permits!('jobs', 30_000)
    expect(await permits.ask('take', 'k', [1], 1)).toEqual(['unknown'])
    expect(await permits.ask('renew', 'k', [2], 1)).toEqual(['held'])
    clock.pass(GRACE_US / 1000)
    expect(await permits.ask('take', 'another', [3], 1)).toEqual(['held'])
  })

  it('are granted at once by the first server that there is', async () => {
    const [server] = await meeting.pair()
    expect(await server.permits!('jobs', 30_000).ask('take', 'k', [1], 1)).toEqual(['held'])
  })

  it('are granted while a process that only serves, and once did, looks for the end of the server', async () => {
    expectWarnings(['CLOCK_FAKED'])
    jest.useFakeTimers({
      doNotFake: ['setImmediate', 'setTimeout', 'nextTick', 'queueMicrotask', 'performance'],
    })
    try {
      const former = meeting.open({ serve: true })
      await former.ready()
      rmSync(join(meeting.folder, `${PROTOCOL}-test`, '1'))
      const next = meeting.open({ serve: true, clock: new FakeClock().now })
      await next.ready()
      const looks = jest.spyOn(Host.prototype, 'left')
      jest.advanceTimersByTime(5000) // then a server looks whether it still is the newest
      await until('it to look', () => looks.mock.calls.length > 0)
      expect(await next.permits!('jobs', 30_000).ask('take', 'k', [1], 1)).toEqual(['held'])
    } finally {
      jest.restoreAllMocks()
      jest.useRealTimers()
    }
  })

  it('leave nothing of a key behind that nobody holds any more', async () => {
    const [server] = await meeting.pair()
    const permits = server.permits!('jobs', 30_000)
    const use = async (keys: number, prefix: string) => {
      for (let i = 0; i < keys; i++) {
        await permits.ask('take', `${prefix}${i}`, [1], 1)
        await permits.ask('release', `${prefix}${i}`, [1], 1)
      }
    }
    await use(1000, 'before')
    const before = bytesInUse()
    await use(50_000, 'after')
    expect((bytesInUse() - before) / 50_000).toBeLessThan(20)
  })

  it('report a permit that is lost, because others took all of them first', async () => {
    const [server, client] = await meeting.pair()
    const lost: string[] = []
    const semaphore = open(client, { onLost: (key) => lost.push(key) })
    await semaphore.acquire('k')
    await server.close()
    const clock = new FakeClock()
    const next = meeting.open({ serve: true, clock: clock.now })
    await next.ready()
    clock.pass(GRACE_US / 1000) // the client is away for longer
    await next.permits!('jobs', 30_000).ask('take', 'k', [1], 1)
    await until('the loss', () => lost.length > 0)
    expect(lost).toEqual(['k'])
  })
})
