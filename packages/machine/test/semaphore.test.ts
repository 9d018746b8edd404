import { createSemaphore, type Semaphore, type SemaphoreOptions } from '@sluice/core'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Host } from '../src/host.js'
import type { MachineStore } from '../src/index.js'
import { PROTOCOL } from '../src/protocol.js'
import { FakeClock } from '@sluice/testing'
import { bytesInUse } from '@sluice/harness/figures'
import { until } from '@sluice/harness/redis'
import { Meeting } from './meeting.js'

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

  it('run out with their lease where a process that lives does not renew them', async () => {
    const clock = new FakeClock()
    const [server] = await meeting.pair({ clock: clock.now })
    const [one, other] = [server.permits!('jobs', 2000), server.permits!('jobs', 2000)]
    expect(await one.take('k', 1, 1, false)).toBe(true)
    clock.pass(1500)
    expect(await one.renew('k', [1], 1)).toEqual(['held'])
    clock.pass(2000)
    expect(await other.take('k', 1, 1, false)).toBe(false)
    clock.pass(1)
    expect(await other.take('k', 1, 1, false)).toBe(true)
    expect(await one.renew('k', [1], 1)).toEqual(['unknown'])
  })

  it('run out with their own lease, also behind one that lasts longer', async () => {
    const clock = new FakeClock()
    const [server] = await meeting.pair({ clock: clock.now })
    const [long, short] = [server.permits!('jobs', 60_000), server.permits!('jobs', 2000)]
    expect(await long.take('k', 1, 2, false)).toBe(true)
    expect(await short.take('k', 1, 2, false)).toBe(true)
    clock.pass(2001)
    expect(await short.take('k', 2, 2, false)).toBe(true)
    expect(await short.renew('k', [1], 2)).toEqual(['unknown'])
    expect(await long.renew('k', [1], 2)).toEqual(['held'])
  })

  it('are not granted to tickets whose process does not poll, nor kept for one that does not notice', async () => {
    const clock = new FakeClock()
    const [server] = await meeting.pair({ clock: clock.now })
    const [one, other, third] = [1, 2, 3].map(() => server.permits!('jobs', 30_000))
    await one!.take('k', 1, 1, false)
    await other!.take('k', 1, 1, true)
    clock.pass(900)
    await third!.take('k', 1, 1, true)
    clock.pass(200)
    await one!.release('k', [1], 1)
    expect(await other!.poll('k', [1], 1)).toEqual(['unknown'])
    clock.pass(2001)
    await one!.take('k', 2, 1, true)
    expect(await one!.poll('k', [2], 1)).toEqual(['held'])
    expect(await third!.poll('k', [1], 1)).toEqual(['unknown'])
  })

  it('go to the tickets of a process that polls only the oldest of them, in their order', async () => {
    const clock = new FakeClock()
    const [server] = await meeting.pair({ clock: clock.now })
    const [one, other, third] = [1, 2, 3].map(() => server.permits!('jobs', 30_000))
    await one!.take('k', 1, 1, false)
    for (let ticket = 1; ticket <= 3; ticket++) await other!.take('k', ticket, 1, true)
    await third!.take('k', 1, 1, true)
    for (let i = 0; i < 3; i++) {
      clock.pass(900)
      expect(await other!.poll('k', [1], 1)).toEqual(['waiting'])
      expect(await third!.poll('k', [1], 1)).toEqual(['waiting'])
    }
    await one!.release('k', [1], 1)
    for (let ticket = 1; ticket <= 3; ticket++) {
      expect(await other!.poll('k', [ticket], 1)).toEqual(['held'])
      await other!.release('k', [ticket], 1)
    }
    expect(await third!.poll('k', [1], 1)).toEqual(['held'])
  })

  it('are given back to their holders first when another process serves', async () => {
    const clock = new FakeClock()
    const server = meeting.open({ serve: true, clock: clock.now })
    await server.ready()
    const client = meeting.open({ clock: clock.now })
    await client.ready()
    const [held, newcomer] = [client.permits!('jobs', 30_000), client.permits!('jobs', 30_000)]
    expect(await held.take('k', 1, 1, false)).toBe(true)
    await server.close()
    await until('the other to serve', async () => (await newcomer.take('k', 1, 1, true)) === false)
    expect(await held.renew('k', [1], 1)).toEqual(['held'])
    clock.pass(701)
    expect(await newcomer.poll('k', [1], 1)).toEqual(['waiting'])
    await held.release('k', [1], 1)
    expect(await newcomer.poll('k', [1], 1)).toEqual(['held'])
  })

  it('are granted while a process that only serves, and once did, looks for the end of the server', async () => {
    jest.useFakeTimers({
      doNotFake: ['setImmediate', 'setTimeout', 'nextTick', 'queueMicrotask', 'performance'],
    })
    try {
      const former = meeting.open({ serve: true })
      await former.ready()
      rmSync(join(meeting.folder, `${PROTOCOL}-test`, '1'))
      const next = meeting.open({ serve: true, clock: new FakeClock().now })
      await next.ready()
      const looks = jest.spyOn(Host.prototype, 'newHolder')
      jest.advanceTimersByTime(5000) // then a server looks whether it still is the newest
      await until('it to look', () => looks.mock.calls.length > 2)
      expect(await next.permits!('jobs', 30_000).take('k', 1, 1, false)).toBe(true)
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
        await permits.take(`${prefix}${i}`, 1, 1, false)
        await permits.release(`${prefix}${i}`, [1], 1)
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
    const next = meeting.open({ serve: true })
    await next.ready()
    await next.permits!('jobs', 30_000).take('k', 1, 1, false)
    await until('the loss', () => lost.length > 0)
    expect(lost).toEqual(['k'])
  })
})
